package scenario

import (
	"fmt"
	"slices"

	"github.com/cabrank/cabrank/internal/strictyaml"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
	"github.com/cabrank/cabrank/lab/internal/result"
)

// checkBars holds bars and columns against figures, arms and loads.
func (s *Scenario) checkBars(n strictyaml.Node) {
	for _, name := range s.Columns {
		if _, known := result.Known(name); !known {
			n.Fault("columns", fmt.Sprintf("%.60q: there is no such figure", name), "")
		}
	}
	for i, b := range s.Bars {
		load, bar := s.Load(b.Load), fmt.Sprintf("bar %d: ", i+1)
		if _, known := result.Known(b.Figure); !known {
			n.Fault("bars", fmt.Sprintf("%s%.60q: there is no such figure", bar, b.Figure), "")
		}
		if b.Most == nil && b.Least == nil {
			n.Fault("bars", bar+"what is to be held? give most or least", "")
		}
		for _, arm := range append([]string{b.Arm}, b.Over...) {
			if load == nil || s.Arm(arm) == nil || len(load.Arms) > 0 && !slices.Contains(load.Arms, arm) {
				n.Fault("bars", fmt.Sprintf("%sarm %q does not run at load %q", bar, arm, b.Load), "")
			}
		}
	}
}

// keepBars leaves out the bars on what is not in the scenario any more.
func (s *Scenario) keepBars() {
	s.Bars = slices.DeleteFunc(slices.Clone(s.Bars), func(b result.Bar) bool { return s.Load(b.Load) == nil || s.Arm(b.Arm) == nil })
}

// checkRaw holds a load against its arms with raw clients.
func (l *Load) checkRaw(s *Scenario) error {
	_, data, _ := s.CallAt(l)
	for _, i := range s.ArmsAt(l) {
		a := &s.Arms[i]
		_, err := rawh2.ParseRequest(data)
		switch {
		case a.Client.Raw != (a.Workers.Program == ProgramEcho):
			return fmt.Errorf("arm %q: a raw client and program: %s go together", a.Name, ProgramEcho)
		case !a.Client.Raw && a.Front.TLS != "":
			return fmt.Errorf("arm %q: TLS is for raw clients", a.Name)
		case !a.Client.Raw:
		case err != nil:
			return fmt.Errorf("arm %q: %w", a.Name, err)
		case a.Front.TLS != "" && slices.Contains([]FrontKind{FrontNone, FrontDNAT, FrontNghttpx}, a.Front.Kind):
			return fmt.Errorf("arm %q: front %s ends no TLS here", a.Name, a.Front.Kind)
		case l.Options.Timeout > 0 || len(l.Events) > 0 || a.Front.Starts || a.Front.Kind == FrontDNS || a.Front.Kind == FrontDNAT || a.Front.Kind == FrontSimulated:
			return fmt.Errorf("arm %q: a raw client has no timeout and no events, and calls one address; its workers are one process", a.Name)
		}
	}
	return nil
}
