#!/usr/bin/env bash
# Prepares the machine and a virtual environment; used by run.sh, test.sh and .ci/run.
#
#   bash scripts/setup.sh run|test      run: what the main job needs; test: that and the test tools
#
# A second call sees that nothing changed and returns at once, without network. What may be set:
#   VLAWATCH_VENV         folder of the virtual environment        (.venv)
#   VLAWATCH_PYTHON       interpreter to make it with              (python3)
#   VLAWATCH_TORCH_SPEC   what pip is asked for as torch           (torch==2.13.0)
#   VLAWATCH_TORCH_INDEX  package index for torch alone. pip takes a build for the CPU from its
#                         configured indexes and folders when there is one; on x86-64 the public
#                         index has only CUDA builds (several GB), so name PyTorch's CPU index here
#   VLAWATCH_NO_APT=1     install no system package, only say which are missing
#   PIP_*                 pip reads its own variables as ever
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

profile=${1:-run}
case $profile in
  run) extra=all ;;
  test) extra=dev ;;
  *) echo "setup.sh: profile '$profile' is not known; give run or test" >&2; exit 2 ;;
esac
venv=${VLAWATCH_VENV:-.venv}
python=${VLAWATCH_PYTHON:-python3}
torch_spec=${VLAWATCH_TORCH_SPEC:-torch==2.13.0}
mesa_major=25 # as MIN_SOFTWARE_MAJOR in monitor/doctor/vulkan.py, which says why

say() { printf 'set-up: %s\n' "$*" >&2; }
die() { printf 'set-up failed: %s\n' "$*" >&2; exit 3; }

# quietly TITLE COMMAND...: run it with its output kept back, shown only if it fails.
quietly() {
  local title=$1 log rc=0 began=$SECONDS
  shift
  log=$(mktemp)
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  if [ "$rc" -ne 0 ]; then
    tail -n 40 "$log" >&2
    rm -f "$log"
    say "$title: exit code $rc"
    return "$rc"
  fi
  rm -f "$log"
  say "$title ($((SECONDS - began)) s)"
}

# ---- system packages -----------------------------------------------------------------------

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"
  elif [ -t 2 ]; then sudo --preserve-env=DEBIAN_FRONTEND "$@"
  else sudo -n --preserve-env=DEBIAN_FRONTEND "$@"
  fi
}

apt_updated=
apt_update() {
  [ -z "$apt_updated" ] || return 0
  # Somebody's unreachable third-party source must not stop us: what we need is judged afterwards.
  quietly "read the package lists" as_root apt-get update -q -o DPkg::Lock::Timeout=300 || true
  apt_updated=1
}

# may_install PACKAGE...: end with the packages' names where apt-get may not be used.
may_install() {
  [ -z "${VLAWATCH_NO_APT:-}" ] || die "system packages are missing ($*) and VLAWATCH_NO_APT is set"
  command -v apt-get >/dev/null || die "no apt-get here; install what Debian calls: $*"
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
    die "neither root nor sudo; let somebody run: apt-get install $*"
}

# apt_install [-t SUITE] PACKAGE...
apt_install() {
  may_install "$@"
  apt_update
  DEBIAN_FRONTEND=noninteractive quietly "installed $*" as_root apt-get install -y -q \
    --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" ||
    die "apt-get could not install: $*"
}

loads() { "$python" -I -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$1" 2>/dev/null; }

# What SAPIEN and OpenCV (which ManiSkill imports) are linked with, and Debian's package of each;
# found by trying on an empty Debian root. A package renamed in Debian 13 is given by both names.
install_libraries() {
  local line soname package missing=()
  while read -r soname line; do
    loads "$soname" && continue
    may_install "$line"
    apt_update
    for package in $line; do
      if [ -n "$(apt-cache madison "$package" 2>/dev/null)" ]; then
        missing+=("$package")
        break
      fi
    done
  done <<'LIST'
libX11.so.6 libx11-6
libGL.so.1 libgl1
libgthread-2.0.so.0 libglib2.0-0t64 libglib2.0-0
libvulkan.so.1 libvulkan1
LIST
  [ "${#missing[@]}" -eq 0 ] || apt_install "${missing[@]}"
}

has_vulkan() { "$python" -I monitor/doctor/vulkan.py >/dev/null 2>&1; }

# mesa_suite: the enabled suite that offers a new enough Mesa, "" for the machine's own choice;
# fails when there is none.
mesa_suite() {
  local candidate version suite
  candidate=$(apt-cache policy mesa-vulkan-drivers | awk '/Candidate:/ {print $2}')
  if dpkg --compare-versions "${candidate:-0}" ge "$mesa_major"; then return 0; fi
  while read -r version suite; do
    if dpkg --compare-versions "$version" ge "$mesa_major"; then
      printf '%s' "${suite%%/*}"
      return 0
    fi
  done < <(apt-cache madison mesa-vulkan-drivers | awk -F'|' '{split($3, a, " "); print $2, a[2]}')
  return 1
}

# add_backports: enable CODENAME-backports from the mirror that this machine already uses.
add_backports() {
  local id codename site sources=/etc/apt/sources.list.d/vlawatch-backports.sources keyring
  id=$(. /etc/os-release && printf '%s' "${ID:-}")
  codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  [ "$id" = debian ] && [ -n "$codename" ] ||
    die "no Mesa $mesa_major or newer in the enabled apt sources of this '$id $codename'"
  # apt itself reads both of its formats and says where the release comes from.
  site=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
    awk -v release="$codename" '$2 == release && $3 == "main" {print $1; exit}')
  [ -n "$site" ] || die "found no mirror of Debian $codename in this machine's apt sources"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  {
    printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\n' "$site" "$codename"
    [ ! -e "$keyring" ] || printf 'Signed-By: %s\n' "$keyring"
  } | as_root tee "$sources" >/dev/null
  say "enabled $codename-backports in $sources (for Mesa $mesa_major or newer)"
  apt_updated=
  apt_update
}

install_vulkan() {
  has_vulkan && return 0
  local suite
  may_install mesa-vulkan-drivers
  apt_update
  if ! suite=$(mesa_suite); then
    add_backports
    suite=$(mesa_suite) || die "Debian's backports offer no Mesa $mesa_major or newer"
  fi
  apt_install ${suite:+-t "$suite"} mesa-vulkan-drivers
  has_vulkan || die "Vulkan still finds no usable device: $("$python" -I monitor/doctor/vulkan.py || true)"
}

# ---- Python --------------------------------------------------------------------------------

# The monitor runs on 3.10 too; transformers 5.24, which the learned policy needs, does not, and the
# last release that does (5.20) decodes wrong tokens with our model.
check_python() {
  command -v "$python" >/dev/null || die "'$python' is not here; install python3 (3.11 or newer)"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$("$python" --version) is too old for the learned policy; give VLAWATCH_PYTHON=python3.11"
}

make_venv() {
  [ ! -x "$venv/bin/python" ] || return 0
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    apt_install python3-venv
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
      die "'$python' has no ensurepip and python3-venv did not bring it; give another VLAWATCH_PYTHON"
  fi
  rm -rf "$venv"
  quietly "made $venv with $("$python" --version)" "$python" -m venv "$venv" || die "no venv"
}

pip_install() { quietly "installed $*" "$venv/bin/python" -m pip install -q --no-input "$@"; }

install_packages() {
  export PIP_DISABLE_PIP_VERSION_CHECK=1
  # Torch first and by itself: asked for by other packages, pip would take the newest CUDA build.
  if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    pip_install ${VLAWATCH_TORCH_INDEX:+--index-url "$VLAWATCH_TORCH_INDEX"} "$torch_spec" ||
      die "pip could not install $torch_spec; set VLAWATCH_TORCH_SPEC or VLAWATCH_TORCH_INDEX"
    if [ ! -e /dev/nvidiactl ] &&
      "$venv/bin/python" -c 'import sys, torch; sys.exit(torch.version.cuda is None)' 2>/dev/null; then
      say "note: this torch is a CUDA build on a machine without a GPU; it works, but wastes" \
        "several GB. VLAWATCH_TORCH_INDEX (see scripts/setup.sh) brings the CPU build."
    fi
  fi
  pip_install -e ".[$extra]" || die "pip could not install the package with its extras"
  # Newer Pythons have no wheel of a motion planner that mani-skill pins and we do not use; there
  # the extra brings mani-skill's other needs (see pyproject.toml) and this brings itself.
  if ! "$venv/bin/python" -c 'import importlib.metadata as m; m.version("mani-skill")' 2>/dev/null; then
    pip_install --no-deps "$(sed -n "s/.*\"\(mani-skill==[0-9.]*\).*/\1/p" pyproject.toml | head -n 1)" ||
      die "pip could not install mani-skill"
  fi
}

# numba keeps what it has compiled next to the source; the first start need not wait for it then.
compile_core() {
  quietly "compiled the monitor's core" "$venv/bin/python" -c \
    'from monitor import Monitor; Monitor(action_low=[-1.0], action_high=[1.0])' || true
}

# ---- all of it -----------------------------------------------------------------------------

check_python
stamp=$venv/.vlawatch-$profile
key=$({
  cat pyproject.toml scripts/setup.sh
  printf '%s\n' "$torch_spec" "$PWD"
} | sha256sum)
current() { [ -x "$venv/bin/python" ] && [ "$(cat "$1" 2>/dev/null)" = "$key" ]; }
# The test set-up holds all that the main job needs.
if { current "$stamp" || current "$venv/.vlawatch-test"; } && has_vulkan; then exit 0; fi

install_libraries
install_vulkan
make_venv
install_packages
compile_core
printf '%s\n' "$key" >"$stamp"
say "ready ($SECONDS s in all)"
