-- expect: states 32, fired 156, depth 6, reduced 32
-- The loop keeps the last of the processors: its rounds depend on their order.
type P: scalarset(3);
var last: P; on: array [P] of boolean;
startstate begin undefine last; for p: P do on[p] := false; end; end;
ruleset p: P do rule "turn" begin on[p] := !on[p]; end; end;
rule "find" exists p: P do on[p] end ==>
  for p: P do if on[p] then last := p; end; end;
end;
rule "forget" begin undefine last; end;
