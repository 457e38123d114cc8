-- expect: states 81, fired 217, depth 9, reduced 81
-- if, elsif, else; switch with lists; for with types and counters; while; ?:.
const N: 4;
type Index: 0..N-1; Colour: enum { Red, Green, Blue };
var cells: array [Index] of Colour; sum: 0..100; i: 0..N;
startstate "all red"
  for k: Index do cells[k] := Red; end;
  sum := 0; i := 0;
endstartstate;
ruleset k: Index do
  rule "cycle" cells[k] != Blue ==>
    switch cells[k]
      case Red, Blue: cells[k] := Green;
      case Green: cells[k] := Blue;
      else error "no such colour";
    endswitch;
    sum := 0;
    for j := 0 to N - 1 by 2 do
      sum := sum + (cells[j] = Blue ? 1 : 0);
    endfor;
    for j := N - 1 to 1 by -2 do
      if cells[j] = Red then sum := sum;
      elsif cells[j] = Green then sum := sum + 10;
      else sum := sum + 20;
      endif;
    endfor;
    i := 0;
    while i < N & cells[i] = Blue do i := i + 1; endwhile;
  endrule;
endruleset;
rule "again" forall k: Index do cells[k] = Blue endforall ==> clear cells; sum := 0; i := 0; end;
invariant "blue" i = N -> !exists k: Index do cells[k] != Blue endexists;
