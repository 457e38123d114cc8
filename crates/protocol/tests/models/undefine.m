-- expect: states 27, fired 54, depth 6, reduced 27
type T: 0..2;
var x: T; y: array[0..1] of T; s: record u: T; v: boolean; end;
startstate begin undefine x; undefine y; clear s; end;
rule "set" isundefined(x) ==> begin x := 1; endrule;
ruleset i: 0..1; v: T do rule "fill" isundefined(y[i]) & !isundefined(x) ==> begin y[i] := v; s.u := v; s.v := !s.v; endrule; endruleset;
rule "drop" !isundefined(y[0]) & !isundefined(y[1]) ==> begin undefine y; undefine x; endrule;
