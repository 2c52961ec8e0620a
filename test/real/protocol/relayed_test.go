//go:build real || soak

package protocol_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"
)

// relayedRole as the first argument makes the test binary what Connect's suite takes for a
// server under test: its own server, with cabrank before it.
const relayedRole = "relayed"

// Fields of a ServerCompatRequest, of its TLSCreds, and of a ServerCompatResponse.
const (
	fieldProtocol, fieldVersion           = 1, 2
	fieldUseTLS, fieldCallers, fieldCreds = 4, 5, 7
	fieldCert, fieldKey                   = 1, 2
	fieldHost, fieldPort, fieldTrust      = 1, 2, 3
	// What a worker speaks: gRPC, if it has nothing else, over HTTP/2.
	protocolGRPC, overHTTP2 = 2, 2
)

// runRelayed answers as a server under test does: with cabrank, one of the suite's own
// servers, a folder for files, and what cabrank is told beside.
func runRelayed(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	asked, err := readSized(os.Stdin)
	if err != nil {
		return err
	}
	secrets, plain := parse(asked, fieldUseTLS, fieldCallers, fieldCreds)
	creds, _ := parse(secrets[fieldCreds])
	plain = protowire.AppendVarint(protowire.AppendTag(plain, fieldVersion, protowire.VarintType), overHTTP2) // the last one counts
	if filepath.Base(args[1]) == "grpcserver" {
		plain = protowire.AppendVarint(protowire.AppendTag(plain, fieldProtocol, protowire.VarintType), protocolGRPC)
	}
	server := exec.CommandContext(ctx, args[1])
	server.Stdin, server.Stderr = bytes.NewReader(sized(plain)), os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Wait() // it ends with ctx
	said, err := readSized(out)
	if err != nil {
		return err
	}
	at, _ := parse(said)
	onPort, _ := protowire.ConsumeVarint(at[fieldPort])
	config := filepath.Join(args[2], fmt.Sprint(os.Getpid()))
	text := args[3] + fmt.Sprintf("upstreams: [%q]\n", net.JoinHostPort(string(at[fieldHost]), fmt.Sprint(onPort)))
	if len(creds) > 0 {
		text += fmt.Sprintf("tls: [{cert: %s.crt, key: %s.key}]\n", config, config)
	}
	if secrets[fieldCallers] != nil { // the certificate of those who may call
		text += fmt.Sprintf("tls_client: {ca: %s.ca, required: true}\n", config)
	}
	for of, content := range map[string][]byte{".crt": creds[fieldCert], ".key": creds[fieldKey], ".ca": secrets[fieldCallers], ".yml": []byte(text)} {
		if err := os.WriteFile(config+of, content, 0o600); err != nil {
			return err
		}
	}
	cabrank := exec.CommandContext(ctx, args[0], "run", "--config", config+".yml", "--listen", "127.0.0.1:0",
		"--probes", "off", "--metrics", "off", "--control", "off", "--slots", "1000")
	cabrank.Cancel = func() error { return cabrank.Process.Signal(syscall.SIGTERM) }
	log, err := cabrank.StderrPipe()
	if err != nil {
		return err
	}
	if err := cabrank.Start(); err != nil {
		return err
	}
	defer cabrank.Wait() // it ends with ctx
	host, port, err := listening(log)
	if err != nil {
		return err
	}
	answer := protowire.AppendString(protowire.AppendTag(nil, fieldHost, protowire.BytesType), host)
	answer = protowire.AppendVarint(protowire.AppendTag(answer, fieldPort, protowire.VarintType), port)
	if len(creds) > 0 {
		answer = protowire.AppendBytes(protowire.AppendTag(answer, fieldTrust, protowire.BytesType), creds[fieldCert])
	}
	if _, err := os.Stdout.Write(sized(answer)); err != nil {
		return err
	}
	_, _ = io.Copy(os.Stderr, log) // until cabrank ends, with ctx
	return nil
}

// listening is where cabrank says that it listens.
func listening(log io.Reader) (host string, port uint64, err error) {
	var line struct {
		Msg  string `json:"msg"`
		Addr string `json:"addr"`
	}
	for decoder := json.NewDecoder(log); line.Msg != "listening"; {
		if err := decoder.Decode(&line); err != nil {
			return "", 0, err
		}
	}
	host, text, err := net.SplitHostPort(line.Addr)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.ParseUint(text, 10, 16)
	return host, port, err
}

// parse returns the fields of a message of protobuf, of which none repeats, by number: what is
// in those that have a length, the others as they are encoded. rest is it without some.
func parse(p []byte, without ...protowire.Number) (fields map[protowire.Number][]byte, rest []byte) {
	for fields = map[protowire.Number][]byte{}; len(p) > 0; {
		number, kind, size := protowire.ConsumeField(p)
		if size < 0 {
			break
		}
		value := p[protowire.SizeTag(number):size]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		fields[number] = value
		if !slices.Contains(without, number) {
			rest = append(rest, p[:size]...)
		}
		p = p[size:]
	}
	return fields, rest
}

// sized puts the length of a message before it, as the suite has it.
func sized(p []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...) }

func readSized(from io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	p := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(from, p)
	return p, err
}
