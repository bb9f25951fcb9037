// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// encode returns the tree as Pyroscope's bytes, with about n nodes. A node comes before its children, whose order is that of
// their names.
func (t *tree) encode(n int64) (encoded []byte) {
	if n <= 0 {
		n = defaultNodes
	}
	t.Fold(int(min(n, maxNodes)), other)
	children := t.children()
	for left := []int32{webui.Root}; len(left) > 0; {
		i := left[len(left)-1]
		left = left[:len(left)-1]
		name := ""
		if i != webui.Root {
			name = t.name(i)
		}
		encoded = binary.AppendUvarint(encoded, uint64(len(name)))
		encoded = append(encoded, name...)
		encoded = binary.AppendUvarint(encoded, uint64(t.Nodes[i].Self[0])) // #nosec G115 -- negative ones wrap around, as theirs do
		encoded = binary.AppendUvarint(encoded, uint64(len(children[i])))
		left = append(left, children[i]...)
	}
	return encoded
}

// children returns those of each node, the last name first.
func (t *tree) children() [][]int32 {
	children := make([][]int32, len(t.Nodes))
	for i, node := range t.Nodes {
		if i != webui.Root {
			children[node.Parent] = append(children[node.Parent], int32(i)) // #nosec G115 -- as their parents
		}
	}
	for _, of := range children {
		slices.SortFunc(of, func(a, b int32) int { return cmp.Compare(t.name(b), t.name(a)) })
	}
	return children
}

func (t *tree) name(node int32) string { return t.Frames[t.Nodes[node].Frame].Name }

// dotNodes is how many functions a graph for Graphviz has without max_nodes.
const dotNodes = 100

// dotQuote makes a text of Graphviz of a name.
var dotQuote = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "")

// dot returns a graph of the largest functions and their calls.
func (a *api) dot(ctx context.Context, sel *query.Selection, largest int64) (string, error) {
	t, err := a.treeOf(ctx, sel)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "digraph \"%s\" {\nnode [shape=box];\n", dotQuote.Replace(sel.Types[0]))
	if t != nil {
		if largest <= 0 {
			largest = dotNodes
		}
		t.calls().write(&out, int(min(largest, maxNodes)))
	}
	out.WriteString("}\n")
	return out.String(), nil
}

// calls are the values of functions, and of the calls between them.
type calls struct {
	total     int64
	functions map[string]*function
	edges     map[call]int64
}

type call struct{ caller, callee string }

type function struct{ self, total int64 }

// calls adds up the tree by functions. A function, or a call, counts once in each stack.
func (t *tree) calls() *calls {
	totals, children := t.Totals(), t.children()
	c := &calls{total: totals[webui.Root][0], functions: map[string]*function{}, edges: map[call]int64{}}
	open, openCalls := map[string]int{}, map[call]int{} // in the stack of a node
	type step struct {
		node  int32
		leave bool
	}
	for steps := []step{{node: webui.Root}}; len(steps) > 0; {
		at := steps[len(steps)-1]
		steps = steps[:len(steps)-1]
		if at.node != webui.Root {
			name, edge := t.name(at.node), call{}
			if parent := t.Nodes[at.node].Parent; parent != webui.Root {
				edge = call{t.name(parent), name}
			}
			if at.leave {
				open[name]--
				openCalls[edge]--
				continue
			}
			f := c.functions[name]
			if f == nil {
				f = &function{}
				c.functions[name] = f
			}
			f.self += t.Nodes[at.node].Self[0]
			if open[name]++; open[name] == 1 {
				f.total += totals[at.node][0]
			}
			if openCalls[edge]++; edge != (call{}) && openCalls[edge] == 1 {
				c.edges[edge] += totals[at.node][0]
			}
			steps = append(steps, step{at.node, true})
		}
		for _, child := range children[at.node] {
			steps = append(steps, step{node: child})
		}
	}
	return c
}

// write writes the n largest functions.
func (c *calls) write(out *strings.Builder, n int) {
	names := slices.SortedFunc(maps.Keys(c.functions), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.functions[b].total, c.functions[a].total), cmp.Compare(a, b))
	})
	names = names[:min(n, len(names))]
	ids := map[string]int{}
	for i, name := range names {
		ids[name] = i + 1
		f := c.functions[name]
		fmt.Fprintf(out, "N%d [label=\"%s\\n%d of %d\"];\n", i+1, dotQuote.Replace(name), f.self, f.total)
	}
	edges := slices.SortedFunc(maps.Keys(c.edges), func(a, b call) int {
		return cmp.Or(cmp.Compare(c.edges[b], c.edges[a]), cmp.Compare(a.caller, b.caller), cmp.Compare(a.callee, b.callee))
	})
	for _, edge := range edges {
		if caller, callee := ids[edge.caller], ids[edge.callee]; caller > 0 && callee > 0 {
			fmt.Fprintf(out, "N%d -> N%d [label=\"%d\"];\n", caller, callee, c.edges[edge])
		}
	}
}
