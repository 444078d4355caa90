#!/usr/bin/env bash
# Make openvla-mini again from nothing: demonstrations, behaviour cloning, two rounds of DAgger, card.
#
#   bash scripts/train.sh [OUT]        (default: data/models/openvla-mini; about 1.5 hours on two cores)
#
# What is finished is kept: a second call goes on where the first one stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:-data/models/openvla-mini}
demos=${DEMOS:-data/demos-train}
minutes=${MINUTES:-21}
export OMP_NUM_THREADS=1

bash scripts/setup.sh test
python=${VLAWATCH_VENV:-.venv}/bin/python

collect() { # NAME FIRST:END
    [ -e "$demos/$1.npz" ] || "$python" -m policies.learn.collect --scenes "$2" --out "$demos/$1.npz"
}

clone() { # NAME MINUTES [ARGUMENTS]
    local name=$1 budget=$2
    shift 2
    [ -e "$out-$name/done" ] && return
    "$python" -m policies.learn.behavior_cloning \
        --demos "$demos" --out "$out-$name" --minutes "$budget" --bf16 "$@"
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
clone bc "$minutes"
dagger dagger1 1002000:1002240 bc
clone dagger1 "$minutes" --init "$out-bc" --lr 5e-4
dagger dagger2 1003000:1003240 dagger1
clone dagger2 "$minutes" --init "$out-dagger1" --lr 5e-4

mkdir -p "$out"
cp "$out-dagger2"/{config.json,model.safetensors,tokenizer.json} "$out/"
exec "$python" -m policies.learn.evaluate --checkpoint "$out" --card --scenes 0:100
