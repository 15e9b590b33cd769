#!/usr/bin/env bash
# all.sh TREE OUT SHA PRESET: every step one after another, each with a limit; what there is lies in OUT
set -u; exec 9>&-
tree=$1 O=$2 sha=$3 P=${4:-matrix-game-2}; shift 4
: ${PY:=python} ${BIG:=0-7} ${SMALL:=8-15} ${LINKS:=any@100gbit*20,any@25gbit*20,any@10gbit*20,any@1gbit*3} ${OTHERS:=boundary-copy*13,pre-copy*13,streaming*13} ${MOVES:=200} ${REP:=20} ${KILLS:=3} ${PLAY:=560} ${ISLAND:=boundary-copy*140,pre-copy*130,streaming*130,replay*80,replay@1gbit*30} ${IW:=500}
mkdir -p $O; cd $tree; export PYTHONPATH=$tree/src:$tree:${PYTHONPATH:-} WORLDMOVE_COMMIT=$sha PYTHONUNBUFFERED=1
W="$PY -c from\ worldmove.cli.main\ import\ main;main()"
wm() { $PY -c 'from worldmove.cli.main import main; main()' "$@"; }
t0=$(date +%s)
note() { echo "$(( $(date +%s) - t0 )) s: $*" | tee -a $O/steps.txt; }
step() { # step NAME LIMIT cores -- command
  local name=$1 limit=$2 cores=$3; shift 4
  note "begin $name"; taskset -c $cores timeout -k 5 $limit "$@" >$O/$name.out 2>$O/$name.err; note "end $name: $?"
}
E_="reference:$P"
( step island $((IW+85)) $SMALL -- $PY -m bench.under_play --engine reference:island --ways "$ISLAND" --control-blocks 80 --within-s $IW --out $O/island.json ) &
island=$!
step under_play $((PLAY+90)) $BIG -- $PY -m bench.under_play --engine $E_ --ways "$LINKS,$OTHERS" --edges boundary-copy,pre-copy,streaming,replay --within-s $PLAY --record $O/under_play.record --out $O/under_play.json
wait $island
step live 430 $BIG -- $PY -c 'from worldmove.cli.main import main; main()' bench live --preset $P -n $MOVES --every 0 --residents 1 --check-blocks 0 --strategy "boundary copy" --segment 25 --control 0.2 --after 50 --replay-s 130 --json
( step verify 260 $SMALL -- $PY -c 'from worldmove.cli.main import main; main()' verify $O/under_play.record --engine $E_ --json ) &
verify=$!
if [ $P = matrix-game-2 ]; then step tests 260 $BIG -- $PY -m pytest -q -rs -p no:cacheprovider tests/gpu; fi
wait $verify
step latents 260 $BIG -- $PY -c 'from worldmove.cli.main import main; main()' bench move --preset $P-latents --json -n 6 --scattered-moves 0 --repeats $REP --file-repeats $REP
step resident 150 $BIG -- $PY -m bench.under_play --engine $E_ --ways "replay@25gbit*4,replay@10gbit*2" --residents 1 --control-blocks 16 --within-s 60 --out $O/resident.json
step failover 150 $BIG -- $PY -m bench.failover --engine $E_ --kills $KILLS --protect 8 --within-s 60 --out $O/failover.json
step movable 100 $BIG -- $PY -m bench.movable --engine $E_ --goal 1.01 --pairs 40 --runs 8 --warm 6 --out $O/movable.json
note done
