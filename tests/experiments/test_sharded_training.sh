#!/usr/bin/env bash
# test_sharded_training.sh: runs that are stopped or killed, and go on
. tests/experiments/expect.sh

program=${BUILD:-build}/sharded_training
train() { # train NAME ARGUMENTS...: losses to $out/NAME
	local name=$1
	shift
	"$program" --device cpu --every 1 "$@" >"$out/said" 2>&1 || return
	awk '/ok$/ { print $6, $9 }' "$out/said" >"$out/$name"
	[ -s "$out/$name" ]
}
near() { # near NAME NAME: losses of the steps that both have
	join <(sort "$out/$1") <(sort "$out/$2") | awk '{ n++ }
		!($2 > 0 && $2/$3 < 1.0001 && $3/$2 < 1.0001) { bad = 1 }
		END { exit bad || n != 6 }'
}
check 'twelve steps' train whole --steps 12 --save "$out/whole.st"
check 'six steps' train half --steps 6 --save "$out/half.st"
check 'and six more' train rest --steps 12 --resume "$out/half.st" \
	--save "$out/rest.st"
check 'the same bits' cmp "$out/whole.st" "$out/rest.st"
check 'the same losses' cmp <(tail -n 6 "$out/whole") "$out/rest"
near_all() { # near_all NAME NAME: the same steps
	paste "$out/$1" "$out/$2" | awk '!($1 == $3 && $2/$4 < 1.0001 &&
		$4/$2 < 1.0001) { bad = 1 } END { exit bad || NR != 12 }'
}
on() { # on RANKS ARGUMENTS...: six more by so many
	train other --steps 12 --resume "$out/half.st" --ranks "$@" &&
		near whole other
}
check 'one rank goes on' on 1
check 'three ranks go on' on 3 --strategy zero1
check 'two ranks go on without shards' on 2 --strategy ddp
check 'three ranks stop' train half --steps 6 --save "$out/half.st" \
	--ranks 3 --strategy zero2
check 'and two go on' on 2
check 'owners of the state go on' on 2 --strategy sharded
check 'late updates' train late --steps 12 --strategy zero2 \
	--save "$out/late.st"
check 'early updates' train early --steps 12 --strategy zero2 --update early \
	--save "$out/early.st"
check 'the same bits, late and early' cmp "$out/late.st" "$out/early.st"
check 'a head in chunks' train chunks --steps 12 --strategy zero2 \
	--head-chunk 100
check 'the same losses in chunks' near_all late chunks

begin_run() { # begin_run STRATEGY: until the first save; sets job
	rm -f "$out/live.st"
	strategy=$1
	"$program" --device cpu --steps 1000000 --save "$out/live.st" \
		--save-every 1 --strategy "$strategy" >"$out/killed" 2>&1 &
	job=$!
	for ((i = 0; i < 200; i++)); do
		[ ! -e "$out/live.st" ] || break
		sleep 0.05
	done
	sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
}
goes_on() { # what the killed run has left, as one that was never killed
	local step
	step=$(grep -ao '"step":"[0-9]*"' "$out/live.st" | tr -cd 0-9)
	[ "$step" -ge 1 ] &&
		train live --steps $((step + 2)) --resume "$out/live.st" \
			--save "$out/live.st" --strategy "$strategy" &&
		train never --steps $((step + 2)) --save "$out/never.st" \
			--strategy "$strategy" &&
		cmp "$out/live.st" "$out/never.st"
}
ends_badly() { ! wait "$job" 2>"$out/end"; }
begin_run fsdp
kill -9 "$(ps -o pid= --ppid "$job" | awk 'NR == 2')"
check 'a lost rank ends the run' ends_badly
check 'and is named' grep -q 'rank 1: signal 9' "$out/killed"
check 'its file is good' goes_on
begin_run sharded
kill -9 "$job"
check 'a killed run' ends_badly
check 'leaves a good file' goes_on

refuse() { # refuse NAME PATTERN ARGUMENTS...
	expect "$1" 2 "$2" sharded_training --device cpu "${@:3}"
}
altered() { # altered SED: the file with other metadata
	LC_ALL=C sed "$1" "$out/half.st" >"$out/altered.st"
}
refuse 'no file' 'cannot read' --resume "$out/none.st"
refuse 'early without zero2' 'expected --strategy zero2' --update early
refuse 'no checkpoint' 'offset' --resume Makefile
refuse 'another vocabulary' "'vocab_size' is 64, expected 256" \
	--resume tests/golden/tiny.safetensors
altered 's/"num_heads":"4"/"num_heads":"2"/'
refuse 'another shape' "'num_heads' is 2, expected 4" --resume "$out/altered.st"
altered 's/"optimizer":"adamw"/"optimizer":"other"/'
refuse 'another optimizer' 'the optimizer is other' --resume "$out/altered.st"
altered 's/"optimizer.v.ln_final.weight"/"optimizer.w.ln_final.weight"/'
refuse 'a lost state' 'no tensor optimizer.v' --resume "$out/altered.st"
refuse 'a run that is over' '6: the run in' --resume "$out/half.st" --steps 6
refuse 'no folder' 'cannot' --save /proc/none/w
refuse 'a folder' 'not a regular file' --save "$out"
cp Makefile "$out/document"
refuse 'a document' 'something else' --save "$out/document"
refuse 'saves to nowhere' 'save-every' --save-every 2
refuse 'ranks that do not divide' 'multiple of the 5 ranks' --ranks 5
refuse 'no fp16' "'fp16' is not one of fp32|bf16" --precision fp16
refuse 'no tf32' "'tf32' is not one of fp32|bf16" --precision tf32
exit $failed
