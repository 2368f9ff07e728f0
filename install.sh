#!/bin/sh
# Installs tamq from a release into ~/.local, without root. Nothing of the download is run before its
# SHA-256 is checked.
#
#   sh install.sh [--prefix DIR] [--from URL] [--version VERSION] [--uninstall]
#
# URL is the folder that holds the archives: https, file, or http on this very machine. The copy that
# belongs to a release knows its URL and VERSION.
set -eu
umask 022

VERSION=
FROM=

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

usage() {
  printf 'usage: sh install.sh [--prefix DIR] [--from URL] [--version VERSION] [--uninstall]\n'
}

platform() {
  system=$(uname -s)
  machine=$(uname -m)
  case $system in
    Linux) ;;
    Darwin) fail 'macOS is not supported yet; tamq runs on Linux' ;;
    *) fail "$system is not supported; tamq runs on Linux" ;;
  esac
  case $machine in
    x86_64 | amd64) printf 'linux-x86_64' ;;
    aarch64 | arm64) printf 'linux-aarch64' ;;
    *) fail "there is no executable for $machine; see docs/install.md for the ways from a checkout" ;;
  esac
}

# fetch URL FILE
fetch() {
  case $1 in
    file://*) cp -- "${1#file://}" "$2" 2>/dev/null || fail "cannot read $1" ;;
    https://* | http://127.0.0.1:* | http://localhost:*)
      if command -v curl >/dev/null 2>&1; then
        curl -fsSL --retry 2 -o "$2" -- "$1" || fail "cannot download $1"
      elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" -- "$1" || fail "cannot download $1"
      else
        fail 'neither curl nor wget is there to download with'
      fi
      ;;
    *) fail "$1: only https and file addresses are allowed" ;;
  esac
}

sha256() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum <"$1"
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 <"$1"
  else
    fail 'neither sha256sum nor shasum is there to check the download with'
  fi | cut -d ' ' -f 1
}

# verify ARCHIVE FILE-OF-ITS-SUM
verify() {
  file=${1##*/}
  expected=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$file\$/\1/p" "$2")
  [ "${#expected}" = 64 ] || fail "$file.sha256 holds no checksum of $file"
  actual=$(sha256 "$1")
  [ "$actual" = "$expected" ] ||
    fail "the checksum of $file is wrong: expected $expected, got $actual. Nothing was installed"
}

remove_files() {
  rm -f -- "$1/bin/tamq" "$1"/share/man/man1/tamq.1 "$1"/share/man/man1/tamq-*.1 \
    "$1/share/bash-completion/completions/tamq" "$1/share/zsh/site-functions/_tamq" \
    "$1/share/fish/vendor_completions.d/tamq.fish"
}

# place FILE TARGET MODE: in one step, also while TARGET runs
place() {
  mkdir -p -- "${2%/*}"
  chmod "$3" "$1"
  mv -f -- "$1" "$2"
}

main() {
  prefix=
  uninstall=
  while [ $# -gt 0 ]; do
    case $1 in
      --prefix | --from | --version)
        [ $# -ge 2 ] || fail "$1 needs a value"
        case $1 in
          --prefix) prefix=$2 ;;
          --from) FROM=$2 ;;
          --version) VERSION=$2 ;;
        esac
        shift
        ;;
      --uninstall) uninstall=yes ;;
      -h | --help)
        usage
        exit 0
        ;;
      *)
        usage >&2
        fail "unknown option $1"
        ;;
    esac
    shift
  done
  if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail 'HOME is not set: give --prefix DIR'
    prefix=$HOME/.local
  fi
  case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
  esac

  if [ -n "$uninstall" ]; then
    [ -e "$prefix/bin/tamq" ] || fail "there is no $prefix/bin/tamq"
    remove_files "$prefix"
    printf 'tamq is removed from %s; configuration and messages are left alone\n' "$prefix"
    exit 0
  fi

  [ -n "$VERSION" ] || fail 'this copy belongs to no release: give --version and --from'
  [ -n "$FROM" ] || fail 'this copy belongs to no release: give --from URL'
  case $VERSION in
    *[!0-9A-Za-z.+-]*) fail "$VERSION is no version" ;;
  esac
  # With a statement of its own, so that a failure inside ends us.
  kind=$(platform)
  name=tamq-$VERSION-$kind

  # Below the prefix: what is moved into place from there arrives whole.
  mkdir -p -- "$prefix" 2>/dev/null || fail "cannot make $prefix"
  work=$(mktemp -d "$prefix/.tamq-install.XXXXXX" 2>/dev/null) || fail "cannot write to $prefix"
  trap 'rm -rf -- "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  fetch "$FROM/$name.tar.gz" "$work/$name.tar.gz"
  fetch "$FROM/$name.tar.gz.sha256" "$work/sum"
  verify "$work/$name.tar.gz" "$work/sum"
  tar -xzof "$work/$name.tar.gz" -C "$work" || fail "cannot unpack $name.tar.gz"
  new=$work/$name
  said=$("$new/tamq" --version 2>&1) ||
    fail "the executable does not run here (it needs glibc, and a file system that allows programs): $said"
  [ "$said" = "tamq $VERSION" ] || fail "the archive holds \"$said\", not tamq $VERSION"

  # Pages of commands that are no more.
  rm -f -- "$prefix"/share/man/man1/tamq-*.1
  for page in "$new"/man/*.1; do place "$page" "$prefix/share/man/man1/${page##*/}" 644; done
  place "$new/completions/tamq.bash" "$prefix/share/bash-completion/completions/tamq" 644
  place "$new/completions/_tamq" "$prefix/share/zsh/site-functions/_tamq" 644
  place "$new/completions/tamq.fish" "$prefix/share/fish/vendor_completions.d/tamq.fish" 644
  place "$new/tamq" "$prefix/bin/tamq" 755

  printf 'tamq %s is installed: %s\n' "$VERSION" "$prefix/bin/tamq"
  found=$(command -v tamq || true)
  if [ -z "$found" ]; then
    printf 'Add it to your PATH: export PATH="%s:$PATH"\n' "$prefix/bin"
  elif [ "$found" != "$prefix/bin/tamq" ]; then
    printf 'Another tamq comes first in your PATH: %s\n' "$found"
  fi
  printf 'After an update, bring service and open windows up to date with: tamq upgrade\n'
}

# At the very end, so that a download that broke off runs nothing.
main "$@"
