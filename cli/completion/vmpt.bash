# SPDX-License-Identifier: GPL-2.0-only OR MIT
# bash completion of vmpt: commands, options, and the words they take.
# Needs nothing but bash, where "=" splits words: --color=a are three.

_vmpt_words()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# The last word of a list with commas between.
_vmpt_list()
{
	local head=

	[[ $cur == *,* ]] && head=${cur%,*},
	mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "${cur##*,}")
	compopt -o nospace 2>/dev/null
}

# The value of option $1. Fails if it takes none.
_vmpt_value()
{
	case $1 in
	--color)
		_vmpt_words 'auto always never' ;;
	--guest-only | --cycle-acc)
		_vmpt_words 'auto yes no' ;;
	--format)
		_vmpt_words 'auto pt rtit' ;;
	--kinds)
		_vmpt_list 'PAD BIP TNT-8 TIP TIP.PGE TIP.PGD FUP CYC MTC TSC MODE.Exec MODE.TSX
			TNT-64 PIP TraceStop CBR TMA VMCS OVF PSB PSBEND MNT PTW EXSTOP MWAIT PWRE
			PWRX BBP BEP CFE EVD TNT FUP.PGE FUP.PGD FUP.BuffOvf FUP.PCC FUP.Far STS ip mode tnt
			fup timing lost' ;;
	--owner)
		_vmpt_list 'host vm unknown' ;;
	--isa)
		_vmpt_words 'pt rtit' ;;
	--host)
		_vmpt_words 'none synthetic' ;;
	--plugin | --kernel | --image | --side-record | --symbols | --chrome | --html)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--output | -o | --root)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	--cpu | --cpus | --connect | --set | --seconds | --threads | -j | --start | --end | --head | -n)
		COMPREPLY=() ;;
	--clock)
		_vmpt_words 'as-is host guest' ;;
	--skz84)
		_vmpt_words 'auto yes no' ;;
	--guest-memory)
		_vmpt_words "$(virsh -q list --name 2>/dev/null)" ;;
	--aux-size | --mtc-period | --psb-period | --every)
		COMPREPLY=() ;;
	--from | --to | --tsc-khz | --top | --tsc-ratio | --mtc-freq | --nominal-ratio | --vm)
		COMPREPLY=() ;;
	*)
		return 1 ;;
	esac
	return 0
}

# vmpt domain: $own and $common of its action, or the actions. Fails if there are none to offer.
_vmpt_domain()
{
	local shared='--connect= --root= --quiet -q --color= --help -h --version'

	if ((COMP_CWORD == 2)); then
		_vmpt_words 'list start stop console trace qemu --help -h'
		return 1
	fi
	common=$shared
	case ${COMP_WORDS[2]} in
	list)
		own='--json' ;;
	start)
		own='--set= --console' ;;
	stop)
		own='--force -f --seconds=' ;;
	console) ;;
	qemu)
		common='--quiet -q --color= --help -h --version' ;;
	trace)
		own='--set= --output= -o --force -f --cpus= --plugin= --isa= --host= --perf-data
			--seconds= --json' ;;
	*)
		return 1 ;;
	esac
}

_vmpt()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} own=
	local clock='--tsc-ratio= --mtc-freq= --nominal-ratio= --skz84= --vm='
	local common='--cpu= --guest-only= --format= --cycle-acc= --side-record= --headless
		--threads= -j --json --quiet -q --color= --help -h --version'

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_vmpt_words 'dump stat vms split clocks timeline exits record domain help --help -h --version'
		return
	fi
	if [[ $cur == '=' ]]; then
		cur=
	elif [[ $prev == '=' ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	_vmpt_value "$prev" && return
	case ${COMP_WORDS[1]} in
	dump)
		own="--start= --end= --head= -n --owner= --kinds= --time --no-bytes --no-pad
			--expand-pad $clock" ;;
	split)
		own="--output= -o --conceal --perf --per-vm --clock= --kernel= --image= --force -f $clock" ;;
	timeline)
		own="--summary --chrome= --html= --from= --to= --owner= --head= -n --perf-time
			--tsc-khz= --symbols= --kernel= --image= $clock" ;;
	exits)
		own="--top= --symbols= --from= --to= --owner= --tsc-khz= --kernel= --image=
			$clock" ;;
	clocks | vms)
		own=$clock ;;
	stat) ;;
	record)
		own='--output= -o --check --dry-run -n --aux-size= --mtc-period= --psb-period= --no-cyc
			--noretcomp --no-events --kcore --every= --guest-memory='
		common='--quiet -q --color= --help -h --version' ;;
	domain)
		_vmpt_domain || return ;;
	help)
		_vmpt_words 'dump stat vms split clocks timeline exits record domain'
		return ;;
	*)
		return ;;
	esac
	if [[ $cur == -* ]]; then
		_vmpt_words "$own $common"
		[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
		return
	fi
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

complete -F _vmpt vmpt
