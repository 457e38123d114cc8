-- expect: states 36, fired 163, depth 6, reduced 24
-- Nested rulesets, counted rulesets, many start states, put.
type P: scalarset(2); V: 1..3;
var x: array [P] of V; n: 0..6;
ruleset v: V do
  startstate "begin" for p: P do x[p] := v; end; n := 0; end;
end;
ruleset p: P do
  ruleset d := 1 to 2; e := 0 to 2 by 2 do
    rule "move" x[p] + d <= 3 & n + e <= 6 ==> x[p] := x[p] + d; n := n + e; end;
  end;
  ruleset q: P do
    rule "copy" p != q & x[p] > x[q] ==> x[q] := x[p]; end;
  end;
end;
rule "back" n = 6 ==> n := 0; end;
rule "again" forall p: P do x[p] = 3 end ==> for p: P do x[p] := 1; end; put "again "; put n; end;
