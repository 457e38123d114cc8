-- expect: states 24, fired 144, depth 5, reduced 24
type R: record a: 0..3; b: boolean; end;
var r: R; t: 0..3;
function mk(a: 0..3; b: boolean): R; var x: R; begin x.a := a; x.b := b; return x; end;
function get(r: R): 0..3; begin for i: 0..3 do if r.a = i then return i; end; end; end;
startstate begin r := mk(0, false); t := 0; end;
ruleset a: 0..3; b: boolean do rule a != r.a ==> begin r := mk(a, b); t := get(mk(t, b)); if t < 3 then t := t + 1; else t := get(r); endif; endrule; endruleset;
