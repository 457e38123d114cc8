-- expect: states 16, fired 52, depth 5, reduced 5
-- The loop looks as if its order mattered, but at most one processor holds the token.
type P: scalarset(3);
var last: P; on: array [P] of boolean;
startstate begin undefine last; for p: P do on[p] := false; end; end;
ruleset p: P do
  rule "take" forall q: P do !on[q] end ==> on[p] := true; end;
  rule "leave" on[p] ==> on[p] := false; end;
end;
rule "find" exists p: P do on[p] end ==>
  for p: P do if on[p] then last := p; end; end;
end;
rule "forget" begin undefine last; end;
