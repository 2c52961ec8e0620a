package rig

import (
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/scenario"
)

func TestScale(t *testing.T) {
	for _, tc := range []struct {
		name           string
		cores, machine float64
		want           float64
	}{
		{"it fits", 1.5, 4, 1},
		{"as in Kubernetes, on two cores", 1.5, 2, 2.0 / 3},
		{"one core for all", 2, 1, 0.25},
		{"half a core for all", 1, 0.5, 0.25},
		{"no quotas", 0, 2, 1},
	} {
		testkit.Equal(t, scale(tc.cores, tc.machine), tc.want, "%s", tc.name)
	}
	spec := Spec{Workers: []Worker{{CPU: 0.5}, {CPU: 0.25}}, Front: scenario.Front{CPU: 1}}
	testkit.Equal(t, spec.Cores(), 1.75, "all of them")
}
