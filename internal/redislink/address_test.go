package redislink_test

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/redislink"
)

// What is no address is refused without a word of what was given.
func TestAddress(t *testing.T) {
	for _, address := range []string{"mysql://me:secret@localhost", "me:secret@localhost:6379", "redis:/me:secret@localhost:6379"} {
		if _, err := redislink.ClientOption(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for address, want := range map[string]string{
		"localhost:6379":                   "localhost:6379",
		"redis://me:secret@localhost:7/1":  "localhost:7",
		"rediss://me:secret@localhost:6/2": "localhost:6",
		"unix:///run/redis.sock":           "/run/redis.sock",
	} {
		o, err := redislink.ClientOption(address)
		if err != nil || len(o.InitAddress) != 1 || o.InitAddress[0] != want {
			t.Errorf("%s: %v %v", address, o.InitAddress, err)
		}
	}
}
