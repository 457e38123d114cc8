-- expect: states 31, fired 42, depth 5, reduced 7
-- Unions as values and as indices, ismember, undefined values in copies.
type
  Proc: scalarset(3); Home: enum { Memory };
  Node: union { Home, Proc };
  Owner: record node: Node; since: 0..1; end;
var owner, old: Owner; seen: array [Node] of boolean;
startstate
  owner.node := Memory; undefine owner.since; undefine old;
  for n: Node do seen[n] := false; end;
end;
ruleset p: Proc do
  rule "take" ismember(owner.node, Home) & !seen[p] ==>
    old := owner; owner.node := p; owner.since := 0; seen[p] := true;
  end;
  rule "pass" ismember(owner.node, Proc) & owner.node != p & !seen[p] ==>
    old := owner; owner.node := p; owner.since := 1 - owner.since; seen[p] := true;
  end;
end;
rule "back" isundefined(old.since) & !seen[Memory] & ismember(owner.node, Proc) ==>
  owner.node := Memory; seen[Memory] := true;
end;
rule "end" seen[owner.node] & forall p: Proc do seen[p] end ==>
  for n: Node do seen[n] := false; end; owner.node := Memory; undefine owner.since; undefine old;
end;
