-- expect: states 26, fired 56, depth 11, reduced 26
type E: enum{P,Q,R}; V: record e: E; n: 2..5; b: boolean; a: array[0..1] of 1..3; end;
var v: V;
startstate begin clear v; end;
rule begin v.e := (v.e = P ? Q : R); v.n := v.n = 5 ? 2 : v.n + 1; endrule;
rule v.e = R ==> begin v.a[0] := v.a[0] % 3 + 1; v.b := !v.b; endrule;
rule v.n = 4 ==> begin clear v; endrule;
