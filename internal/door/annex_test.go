package door

import (
	"errors"
	"net"
	"testing"
)

// An annex hands on what it is given as long as it is open, and closes it afterwards.
func TestAnnex(t *testing.T) {
	a := NewAnnex()
	ours, theirs := net.Pipe()
	go a.ServeConn(ours) // ends with Accept
	nc, err := a.Accept()
	if err != nil || nc != ours {
		t.Fatalf("accepted %v, %v", nc, err)
	}
	_ = a.Close()
	_ = a.Close() // once more changes nothing
	if _, err := a.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
	a.ServeConn(nc)
	if _, err := theirs.Read(make([]byte, 1)); err == nil {
		t.Error("the connection lives on")
	}
}
