#!/usr/bin/env bash
# Make a folder in which the real SimplerEnv (SAPIEN 2) runs on a Debian machine without a GPU.
#
#   scripts/simpler_local.sh FOLDER SIMPLERENV MANISKILL2_REAL2SIM [PYTHON]
#
# FOLDER               is made if need be; everything goes into it, nothing is installed elsewhere.
# SIMPLERENV           git repository of simpler-env/SimplerEnv, with or without a work tree.
# MANISKILL2_REAL2SIM  the same of its submodule, simpler-env/ManiSkill2_real2sim.
# PYTHON               a Python 3.10 or 3.11 (default: python3.11).
#
# Python packages come from the index that pip is set up with. SAPIEN 2 needs a Vulkan driver with
# external semaphores on the CPU, which Mesa has since 26: where this machine's own is older, a newer
# Debian's is taken from the mirror that apt is set up with and unpacked in FOLDER/mesa, for the
# processes started by FOLDER/python alone. Afterwards:
#
#   FOLDER/vlawatch run --env simpler/widowx_stack_cube --policy expert --scenes 0:24
#   vlawatch run --env simpler/widowx_stack_cube --env-python FOLDER/python …   (from another venv)
set -euo pipefail

if [ $# -lt 3 ]; then
    sed -n '2,20p' "$0"
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
simpler=$(cd "$2" && pwd)
maniskill=$(cd "$3" && pwd)
python=$(command -v "${4:-python3.11}")
python=$("$python" -c 'import sys; print(sys.executable)')
here=$(cd "$(dirname "$0")/.." && pwd)
suite=${SIMPLER_DEBIAN:-trixie}

sources() { # a repository's files; large ones that a partial copy lacks are passed over
    local git_dir
    git_dir=$(git -C "$1" rev-parse --absolute-git-dir)
    mkdir -p "$2"
    GIT_DIR=$git_dir GIT_INDEX_FILE=$folder/index git read-tree HEAD
    GIT_DIR=$git_dir GIT_WORK_TREE=$2 GIT_INDEX_FILE=$folder/index \
        git checkout-index --all --force --quiet --prefix="$2/" 2>"$folder/not_checked_out.txt" || true
    rm -f "$folder/index"
}

mesa() { # unpack Mesa and what it needs; no chroot, no mount, no change to this system
    local apt=$folder/apt root=$folder/mesa mirror
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null \
        | sed -nE 's/^(URIs:|deb )\s*(https?:[^ ]*\/debian\/?)( .*)?$/\2/p' | awk 'NR==1') || true
    if [ -z "$mirror" ]; then
        echo "no Debian mirror in /etc/apt: install Mesa 26 (lavapipe) yourself" >&2
        return 1
    fi
    mkdir -p "$apt"/{lists/partial,archives/partial,parts,preferences} "$root"
    printf 'deb %s %s main\ndeb %s %s-backports main\n' "$mirror" "$suite" "$mirror" "$suite" \
        >"$apt/sources.list"
    : >"$apt/status"
    local options=(
        -o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/parts"
        -o "Dir::Etc::preferencesparts=$apt/preferences" -o "Dir::State::lists=$apt/lists"
        -o "Dir::State::status=$apt/status" -o "Dir::Cache::archives=$apt/archives"
        -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" -o "APT::Sandbox::User="
    )
    apt-get "${options[@]}" update -q
    apt-get "${options[@]}" install -yq --download-only --no-install-recommends \
        -t "$suite-backports" mesa-vulkan-drivers libvulkan1 libgl1 libegl1 libglib2.0-0t64 \
        libx11-6 libxext6 libsm6 libgomp1 libexpat1 libssl3t64 libffi8 libbz2-1.0 liblzma5 \
        libsqlite3-0 libreadline8t64 libgl1-mesa-dri libncursesw6 libcrypt1 zlib1g libuuid1
    local package
    for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
    rm -f "$apt"/archives/*.deb
}

[ -d "$folder/SimplerEnv/simpler_env" ] || sources "$simpler" "$folder/SimplerEnv"
[ -d "$folder/SimplerEnv/ManiSkill2_real2sim/mani_skill2_real2sim" ] \
    || sources "$maniskill" "$folder/SimplerEnv/ManiSkill2_real2sim"

if [ ! -x "$folder/venv/bin/python" ]; then
    "$python" -m venv "$folder/venv"
    "$folder/venv/bin/pip" install -q "setuptools<81" sapien==2.2.2 gymnasium==0.29.1 numpy==1.26.4 \
        "opencv-python-headless<4.11" GitPython h5py imageio pillow pydantic pyyaml requests rich \
        ruckig scipy tabulate tqdm transforms3d trimesh typer
fi
"$folder/venv/bin/pip" install -q --no-deps -e "$here"
site=$("$folder/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$folder/SimplerEnv" "$folder/SimplerEnv/ManiSkill2_real2sim" >"$site/simpler_env.pth"
"$folder/venv/bin/python" "$here/scripts/simpler_standins.py" \
    "$folder/SimplerEnv/ManiSkill2_real2sim/data"

if [ ! -e "$folder/mesa/usr/share/vulkan/icd.d/lvp_icd.json" ]; then mesa; fi
arch=$(uname -m)-linux-gnu
cat >"$folder/python" <<END
#!/bin/sh
# The virtual environment's Python over the libraries in $folder/mesa.
export VK_ICD_FILENAMES="$folder/mesa/usr/share/vulkan/icd.d/lvp_icd.json"
exec "$folder/mesa/usr/lib64/ld-linux-x86-64.so.2" --argv0 "$folder/venv/bin/python" \\
    --library-path "$folder/mesa/usr/lib/$arch" "$python" "\$@"
END
cat >"$folder/vlawatch" <<END
#!/bin/sh
exec "$folder/python" "$folder/venv/bin/vlawatch" "\$@"
END
chmod +x "$folder/python" "$folder/vlawatch"
"$folder/python" -c 'import simpler_env; print(len(simpler_env.ENVIRONMENTS), "tasks of SimplerEnv")'
