-- expect: states 96, fired 240, depth 15, reduced 96
type R: record a: 0..3; b: array[0..1] of 0..3; end;
var r: array[0..2] of R; k: 0..2;
startstate begin for i: 0..2 do r[i].a := i; r[i].b[0] := 0; r[i].b[1] := 1; endfor; k := 0; end;
-- the alias keeps naming the element that k picked when it was bound
rule "move" begin
  alias here: r[k]; first: here.b[0] do
    k := (k + 1) % 3;
    if first < 3 then first := first + 1; endif;
    here.a := k;
  endalias;
endrule;
ruleset i: 0..2 do alias x: r[i].b[1] do rule "one" x = 1 ==> begin x := 2; endrule; endalias; endruleset;
invariant "fine" forall i: 0..2 do r[i].b[1] != 0 endforall;
