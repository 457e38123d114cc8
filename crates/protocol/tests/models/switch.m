-- expect: states 19, fired 57, depth 6, reduced 19
type E: enum {A, B, C, D};
var e: E; n: 0..9;
procedure bump(var n: 0..9; step: 0..3; e: E);
begin
  switch e case A: n := (n + step) % 10; case B, C: if n > 0 then n := n - 1; end; else n := 0; endswitch;
end;
function twice(n: 0..9): 0..9; begin if n > 4 then return 9; end; return n + n; end;
startstate begin e := A; n := 0; end;
ruleset to_: E do rule "go" to_ != e ==> begin bump(n, 3, e); e := to_; if twice(n) = 9 then n := twice(0); endif; endrule; endruleset;
