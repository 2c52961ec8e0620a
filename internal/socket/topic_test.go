package socket

import (
	"testing"

	"github.com/cabrank/cabrank/internal/broker"
)

// The empty pattern is the channel that it matches; all others are what they say.
func TestEmptyPattern(t *testing.T) {
	for _, tc := range []struct {
		request request
		want    broker.Topic
	}{
		{request{pattern: true}, broker.Topic{}},
		{request{}, broker.Topic{}},
		{request{channel: "*", pattern: true}, broker.Topic{Name: "*", Pattern: true}},
	} {
		if got := tc.request.topic(); got != tc.want {
			t.Errorf("got %+v, want %+v", got, tc.want)
		}
	}
}
