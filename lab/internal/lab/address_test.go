package lab_test

import (
	"testing"

	"github.com/cabrank/cabrank/lab/internal/lab"
)

// An address that cannot be is refused before anything is asked.
func TestAddressRefused(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:50051": `address "http://localhost:50051": want host:port without http://, such as localhost:50051`,
		"localhost":              `address "localhost" has no port: want host:port, such as localhost:8080, or unix:///path`,
	} {
		var l lab.Load
		l.Target = address
		if _, err := l.Prepare(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}
