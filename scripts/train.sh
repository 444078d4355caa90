#!/usr/bin/env bash
# Make one of the small policies again from nothing: demonstrations, behaviour cloning, card.
#
#   bash scripts/train.sh [POLICY [OUT]]    (openvla-mini, spatialvla-mini or pi0-mini)
#
# openvla-mini takes about an hour on two cores and a round of DAgger. The other two start from the
# vision encoder of the packaged openvla-mini and keep it frozen, which takes half as long. What is
# finished is kept: a second call goes on where the first one stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

policy=${1:-openvla-mini}
out=${2:-data/models/$policy}
demos=${DEMOS:-data/demos-train}
features=${FEATURES:-data/features}
export OMP_NUM_THREADS=1

case $policy in
openvla-mini | spatialvla-mini | pi0-mini) ;;
*) echo "unknown policy '$policy'; known: openvla-mini, spatialvla-mini, pi0-mini" >&2 && exit 2 ;;
esac

bash scripts/setup.sh test
python=${VLAWATCH_VENV:-.venv}/bin/python

collect() { # NAME FIRST:END
    [ -e "$demos/$1.npz" ] || "$python" -m policies.learn.collect --scenes "$2" --out "$demos/$1.npz"
}

clone() { # NAME MINUTES [SHARD TO COUNT TWICE] [ARGUMENTS]
    local name=$1 budget=$2 twice=()
    shift 2
    if [ -e "${1:-}" ]; then twice=("$1") && shift; fi
    [ -e "$out-$name/done" ] && return 0
    "$python" -m policies.learn.behavior_cloning --policy "$policy" \
        --demos "$demos" "${twice[@]}" --out "$out-$name" --minutes "$budget" "$@"
    touch "$out-$name/done"
}

dagger() { # NAME FIRST:END LEARNER
    [ -e "$demos/$1.npz" ] || "$python" -m policies.learn.dagger --policy "$policy" \
        --checkpoint "$out-$3" --scenes "$2" --out "$demos/$1.npz"
}

if [ "$policy" = openvla-mini ]; then
    # Two shards at a time: the simulator uses one core.
    collect bc0 1000000:1000700 &
    collect bc1 1000700:1001400 &
    wait
    clone bc "${MINUTES:-21}" --bf16
    dagger dagger1 1002000:1002240 bc
    # The learner's own frames count twice: there are few of them.
    clone final "${MINUTES_DAGGER:-13}" "$demos/dagger1.npz" --init "$out-bc" --lr 7e-4 --bf16
else
    demos=${DEMOS:-data/demos-chunked}
    collect bc0 1000000:1000225
    [ -e "$features/features.npz" ] ||
        "$python" -m policies.learn.feature_cache --demos "$demos" --out "$features"
    clone final "${MINUTES:-36}" --features "$features" --batch 16 --ema 0.995
fi

mkdir -p "$out"
for file in config.json processor_config.json model.safetensors tokenizer.json; do
    [ ! -e "$out-final/$file" ] || cp "$out-final/$file" "$out/"
done
exec "$python" -m policies.learn.evaluate --policy "$policy" --checkpoint "$out" --card --scenes 0:100
