package redislink_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/redislink"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What is no address is refused without a word of what was given.
func TestAddressMistakes(t *testing.T) {
	for address, want := range map[string]string{
		"mysql://me:secret@localhost":                           "want an address such as",
		"me:secret@localhost:6379":                              "want an address such as",
		"me:secret":                                             "want an address such as",
		"redis:/me:secret@localhost:6379":                       "want an address such as",
		"redis://me:secret#1@localhost:6379":                    "want an address such as",
		"redis://me:12#secret@localhost:6379":                   "want an address such as",
		"redis://me:12/secret@localhost:6379":                   "want an address such as",
		"redis://me:12?secret@localhost:6379":                   "unknown parameter",
		"redis://me:secret@localhost:99999":                     "want an address such as",
		"redis://localhost:6379/one":                            "want an address such as",
		"redis://localhost:6379?db=secret":                      "want an address such as",
		"unix://me:secret@host/run/redis.sock":                  "want an address such as",
		"redis://":                                              "want an address such as",
		"localhost":                                             "want an address such as",
		"localhost:redis":                                       "want an address such as",
		"redis://me:secret@a:1?adr=b:2":                         "unknown parameter",
		"redis://me:secret@a:1?skip_verify=true":                "unknown parameter",
		"redis://me:secret@a:1?addr=b":                          "addr in the address",
		"redis://a?master_set=x":                                "with their ports",
		"redis://a:1?master_set=":                               "want a name",
		"redis://me:secret@a:1?cacert=/x":                       "for rediss://",
		"rediss://me:secret@a:1?cert=/x":                        "belong together",
		"rediss://me:secret@a:1?cacert=/nowhere/ca.pem":         "/nowhere/ca.pem",
		"rediss://me:secret@a:1?cert=/nowhere/c&key=/nowhere/k": "/nowhere/c",
	} {
		_, err := redislink.ClientOption(address)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAddress(t *testing.T) {
	for address, want := range map[string]string{
		"localhost:6379":                             "localhost:6379",
		":6379":                                      ":6379",
		"[::1]:6379":                                 "[::1]:6379",
		"redis://localhost":                          "localhost:6379",
		"redis://localhost/":                         "localhost:6379",
		"redis://me:secret@localhost:7/1":            "localhost:7",
		"rediss://me:secret@localhost:6/2":           "localhost:6",
		"unix:///run/redis.sock":                     "/run/redis.sock",
		"redis://a:1?addr=b:2&addr=c:3":              "a:1 b:2 c:3",
		"redis://a:1,addr=b:2":                       "",
		"valkeys://:p%40ss@a:1?addr=b:2":             "a:1 b:2",
		"redis://a:1/3?addr=b:2&master_set=mymaster": "a:1 b:2",
	} {
		o, err := redislink.ClientOption(address)
		if (err == nil) != (want != "") || err == nil && !slices.Equal(o.InitAddress, strings.Fields(want)) {
			t.Errorf("%s: %v %v", address, o.InitAddress, err)
		}
	}
	o, err := redislink.ClientOption("rediss://me:p%40%23%2F@a:1/3?addr=b:2&master_set=m&sentinel_username=s&sentinel_password=t")
	if err != nil || o.Username != "me" || o.Password != "p@#/" || o.SelectDB != 3 || o.TLSConfig.ServerName != "a" ||
		o.Sentinel.MasterSet != "m" || o.Sentinel.Username != "s" || o.Sentinel.Password != "t" || o.Sentinel.TLSConfig == nil {
		t.Errorf("%+v %v", o, err)
	}
}

// No text makes it panic, or say a word of what is behind a user's name.
func FuzzAddress(f *testing.F) {
	for _, address := range []string{":6379", "redis://u:xyzzyx@h:1/2?addr=i:3&master_set=m", "rediss://h?cacert=c", "unix:///s?db=1", "redis://u:xyzzyx?@h", "u:xyzzyx@h:1"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		_, err := redislink.ClientOption(address)
		if err == nil || strings.Contains(address, "cacert") || strings.Contains(address, "cert") {
			return // a file's name is said
		}
		testkit.Want(t, !strings.Contains(err.Error(), "xyzzyx") && !strings.Contains(err.Error(), "\n"), "%q: %v", address, err)
	})
}
