#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# --help, the man pages and the completions of bash, fish and zsh name the same options; the
# completions give the right words; the man pages have no errors.
# Usage: test-words.sh VMPT BASH-COMPLETION FISH-COMPLETION ZSH-COMPLETION MAN-PAGE...
set -u
export LC_ALL=C.UTF-8 # a character is a column
vmpt=$(realpath "$1") completion=$2 fish=$(realpath "$3") zsh=$(realpath "$4")
shift 4
mapfile -t pages < <(realpath "$@")

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"

# shellcheck source=/dev/null
source "$completion" || exit 1

# What the completion offers for the words given; the last one is being typed.
offer()
{
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	_vmpt 2>/dev/null
	echo "${COMPREPLY[*]-}"
}

expect()
{
	local want=$1 got
	shift
	got=$(offer "$@")
	check "completion of $*" [ "$got" = "$want" ]
}

# Is $2 a part of $1?
holds()
{
	[[ $1 == *"$2"* ]]
}

expect 'domain dump' vmpt d
expect 'clocks' vmpt cl
expect 'timeline' vmpt t
expect 'exits' vmpt e
expect 'index insn' vmpt in
expect '--hash' vmpt insn --ha
expect 'guest' vmpt split --clock = g
expect 'split stat' vmpt s
expect 'record' vmpt r
expect '--guest-memory= --guest-memory-at=' vmpt record --gu
# shellcheck disable=SC2317 # the completion calls it
virsh()
{
	[[ $* == '-q list --name' ]] && printf 'web-1\nweb-2\ndb\n'
}
expect 'web-1 web-2' vmpt record --guest-memory = we
expect 'vms' vmpt help v
expect 'auto always' vmpt vms --color = a
expect 'never' vmpt vms --color n
expect 'auto yes no' vmpt vms --guest-only =
expect '--guest-only=' vmpt stat --guest-o
expect 'rtit' vmpt stat --format = r
expect 'yes' vmpt stat --cycle-acc = y
expect '--side-record=' vmpt vms --si
expect 'FUP.PGE FUP.PGD' vmpt dump --kinds = FUP.PG
expect '' vmpt dump --tsc-ratio = 1
expect '--owner=' vmpt stat --own
expect '--output= --owner=' vmpt split --o
expect '--perf --per-vm' vmpt split --pe
expect '--owner=' vmpt dump --ow
expect 'PSB PSBEND' vmpt dump --kinds = PS
expect 'PIP,PSB PIP,PSBEND' vmpt dump --kinds = PIP,PS
expect 'host' vmpt dump --owner ho
expect '' vmpt vms --cpu = 0
expect 'domain' vmpt help dom
expect '' vmpt help vms ''

# In a folder of known files
dir=$(mktemp -d) || exit 1
trap 'rm -r "$dir"' EXIT
mkdir "$dir/out" && : >"$dir/one.pt" || exit 1
cd "$dir" || exit 1
expect 'one.pt' vmpt vms on
expect 'out' vmpt split -o o
expect 'one.pt' vmpt split --kernel = one
expect 'one.pt' vmpt vms --side-record = one
expect 'one.pt' vmpt exits --symbols = one

# A build without libvirt has no domains; the rest of the words is there all the same.
commands=(dump stat vms split clocks timeline exits wait insn record index)
if "$vmpt" domain --help >/dev/null 2>&1; then
	commands+=('domain list' 'domain start' 'domain stop' 'domain console' 'domain trace' 'domain qemu')
	expect 'start stop' vmpt domain st
	expect 'start stop' vmpt help domain st
	expect 'none' vmpt domain trace --host = n
	expect '' vmpt domain start --connect = q
	expect '--output=' vmpt domain trace --o
	expect '' vmpt domain nonsense --o
	expect 'out' vmpt domain trace -o o
	expect 'one.pt' vmpt domain trace --plugin = on
else
	check 'domain: libvirt is missing' \
		holds "$("$vmpt" domain list 2>&1)" 'vmpt domain: error: built without libvirt: '
fi
# fish and zsh: of each line typed, the words offered.
cat >typed <<'END'
vmpt spl
vmpt vms --color a
vmpt vms --host-only=
vmpt dump --kinds=PIP,PSBE
vmpt help cl
vmpt index on
vmpt split -o o
END
offered='split|always auto|auto no yes|PSBEND|clocks|one.pt|out'
printf 'vmpt %s --\n' "${commands[@]}" >>typed
command -v fish >/dev/null && fish --no-config -c '
	source $argv[1]
	while read -l line
		echo "? $line"
		complete -C "$line" | string replace -r "\t.*" "" | string replace -r "^(--[^=]*=)?(.*,|)" "\$1"
	end <typed' "$fish" >offers.fish
mkdir zsh && cat >zsh/.zshrc <<'END'
fpath=(${COMPLETION%/*} $fpath)
autoload -Uz compinit && compinit -u -D
compadd()
{
	local -a hits
	# With these it fills arrays and offers nothing.
	[[ ${(M)@:#-[OAD]*} ]] || { builtin compadd -O hits "$@"; print -l -- $hits >>offers.zsh; }
	builtin compadd "$@"
}
zle-line-init()
{
	local line

	while IFS= read -r line; do
		print -r "? $line" >>offers.zsh
		BUFFER=$line CURSOR=$#line
		zle list-choices
	done <typed
	exit
}
zle -N zle-line-init
END
# It completes on a terminal only.
command -v zsh >/dev/null && COMPLETION=$zsh ZDOTDIR=$dir/zsh TERM=xterm \
	within 60 script -qec 'zsh -d -i' /dev/null </dev/null >/dev/null 2>&1
# offers SHELL LINE: what it offers, in order, options as in --name.
offers()
{
	awk -v line="? $2" '/^\? / { found = $0 == line; next } found && NF' "offers.$1" |
		sed 's/ *$//; s/=$//; s/^--[^=]*=//; s/\/$//' | sort -u
}
shells=()
for shell in fish zsh; do
	command -v $shell >/dev/null || { skip_part "the completion of $shell: no $shell: make deps" && continue; }
	shells+=("$shell")
	for n in 1 2 3 4 5 6 7; do
		line=$(sed -n ${n}p typed)
		check "$shell: completion of $line" \
			[ "$(offers $shell "$line" | xargs)" = "$(cut -d '|' -f $n <<<"$offered")" ]
	done
done
topics=$("$vmpt" help common && "$vmpt" help rtit | sed 1,5d)
check 'the topics fit 80 columns' not grep -E '^.{81}' <<<"$topics"
for cmd in "${commands[@]}"; do
	# shellcheck disable=SC2086 # one word or two
	set -- $cmd
	rc=0
	help=$("$vmpt" "$@" --help) || rc=$?
	help=${help//'[='/=}
	check "$cmd --help" [ $rc = 0 ]
	# The names of those that are in vmpt help common or vmpt help rtit, with their texts.
	more=$(sed -n '/^More options:/,/^$/p' <<<"$help" | grep -oE -- '--[a-z0-9-]+')
	for option in $more; do
		check "$cmd: $option in a topic" grep -qE -- "^ +(-[a-z], )?$option(=| |$)" <<<"$topics"
	done
	words=" $(offer vmpt "$@" --) $(offer vmpt "$@" -) "
	entries=$(for page in "${pages[@]}"; do
		[[ $page != */vmpt.1 && $page != *"/vmpt-$1.1" ]] || grep -A1 '^\.TP$' "$page"
	done | sed 's/\\-/-/g; s/\\fR\[\\fB=/=/')
	named=$(sed '/^More options:/,/^$/d' <<<"$help" | grep -oE '^ +(-[a-z], )?--[a-z0-9-]+=?' | grep -oE -- '--[a-z0-9-]+=?')
	named+=$'\n'$(for option in $more; do
		grep -oE -- "^ +(-[a-z], )?$option(=| |$)" <<<"$topics" | grep -oE -- '--[a-z0-9-]+=?' | head -1
	done)
	check "$cmd --help names options" [ "$(wc -l <<<"$named")" -ge 4 ]
	for option in $named; do
		check "$cmd: completion of $option" holds "$words" " $option "
		check "$cmd: $option in a man page" holds "$entries" "\\fB$option\\f"
	done
	for shell in "${shells[@]}"; do
		check "$cmd: options in $shell" diff <(tr -d = <<<"$named" | grep . | sort -u) \
			<(offers "$shell" "vmpt $cmd --" | grep -e '^--')
	done
	for option in $(grep -oE -- '--[a-z0-9-]+=?' <<<"$words"); do
		check "$cmd: $option in --help" grep -qxF -- "$option" <<<"$named"
	done
	check "$cmd --help fits 80 columns" not grep -E '^.{81}' <<<"$help"
done

# vmpt(1) has the commands of --help, each with its line and among the references.
version=$("$vmpt" --version)
listed=$("$vmpt" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) *\(.*\)/\1 \2/p')
check '--help lists commands' [ "$(wc -l <<<"$listed")" -ge 9 ]
for page in "${pages[@]}"; do
	check "$page: the version" grep -q "^\.TH .* \"$version\" " "$page"
	[[ $page == */vmpt.1 ]] || continue
	while read -r cmd title; do
		check "$page: $cmd" grep -qxF "${title^}." <(grep -xFA1 ".BR vmpt-$cmd (1)" "$page" | tr -d '\\')
		check "$page: see also $cmd" grep -qxF ".BR vmpt-$cmd (1)," "$page"
	done <<<"$listed"
done
if type groff >/dev/null 2>&1; then
	for page in "${pages[@]}"; do
		rc=0
		out=$(groff -man -ww -z -Tutf8 "$page" 2>&1) || rc=$?
		check "$page: no errors" [ "$rc$out" = 0 ]
	done
else
	skip_part 'the man pages: no groff: make deps'
fi
finish
