#!/usr/bin/env bash
# Make openvla-mini again from nothing: demonstrations, behaviour cloning, a round of DAgger, card.
#
#   bash scripts/train.sh [OUT]        (default: data/models/openvla-mini; about an hour on two cores)
#
# What is finished is kept: a second call goes on where the first one stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:-data/models/openvla-mini}
demos=${DEMOS:-data/demos-train}
export OMP_NUM_THREADS=1

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
    "$python" -m policies.learn.behavior_cloning \
        --demos "$demos" "${twice[@]}" --out "$out-$name" --minutes "$budget" --bf16 "$@"
    touch "$out-$name/done"
}

dagger() { # NAME FIRST:END LEARNER
    [ -e "$demos/$1.npz" ] || "$python" -m policies.learn.dagger \
        --checkpoint "$out-$3" --scenes "$2" --out "$demos/$1.npz"
}

# Two shards at a time: the simulator uses one core.
collect bc0 1000000:1000700 &
collect bc1 1000700:1001400 &
wait
clone bc "${MINUTES:-21}"
dagger dagger1 1002000:1002240 bc
# The learner's own frames count twice: there are few of them.
clone final "${MINUTES_DAGGER:-13}" "$demos/dagger1.npz" --init "$out-bc" --lr 7e-4

mkdir -p "$out"
cp "$out-final"/{config.json,model.safetensors,tokenizer.json} "$out/"
exec "$python" -m policies.learn.evaluate --checkpoint "$out" --card --scenes 0:100
