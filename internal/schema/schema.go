package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/descriptorpb"
)

// between is the least time from the beginning of one conversation to the next: callers
// that name methods which there are not have servers asked once a second.
const between = time.Second

// Faults of a look for a method.
var (
	// ErrUnknown is that there is no such method.
	ErrUnknown = errors.New("there is no such method")
	// ErrUndescribed is that the servers have no reflection, and no file has the method.
	ErrUndescribed = errors.New("the servers do not describe this method by reflection, nor does a file of descriptors")
	// ErrUnavailable is that no server has answered.
	ErrUnavailable = errors.New("no server describes its methods now")
)

// Options of a Schema.
type Options struct {
	// Services are the names of those whose methods are wanted. Servers are asked for no
	// other; nil: for all that they have.
	Services []string
	// Files go before what servers say of the services that they have; nil: there are
	// none.
	Files *Files
	// Open begins a conversation with any server; nil: nobody is asked.
	Open Opener
	// Limit is how long a conversation may take.
	Limit time.Duration
	// Failed is told why a conversation has failed, if the one before had not; nil:
	// nobody wants to know. It must not block.
	Failed func(error)
}

// Schema is the methods of some services.
//
// Life: New; conversations that are under way end in Options.Limit.
// Concurrency: every method may be called from anywhere.
type Schema struct {
	options  Options
	services map[string]bool

	mu      sync.Mutex
	methods map[string]*Method // by path, as servers describe them; replaced, not changed
	stale   bool               // servers have changed since they were asked
	began   time.Time          // of the last conversation
	asking  chan struct{}      // closed when the one that is under way ends; nil: none is
	failure error              // of the last one
}

// New returns a schema that has asked nobody yet.
func New(options Options) *Schema {
	s := &Schema{options: options, services: map[string]bool{}}
	for _, name := range options.Services {
		s.services[name] = true
	}
	return s
}

// Changed says that servers have come or gone, so that what is known may be old. It is
// used until they have been asked again, which the next call of Method sees to.
func (s *Schema) Changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// Method returns the method of a path, "/pkg.Service/Method". For one that is not known
// servers are asked, at most once a second, and it waits for their answer.
//
// Errors: ErrUnknown, ErrUndescribed, ErrUnavailable, and that of the context.
func (s *Schema) Method(ctx context.Context, path string) (*Method, error) {
	if m := s.inFiles(path); m != nil {
		return m, nil
	}
	if s.options.Open == nil || s.options.Services != nil && !s.services[serviceOf(path)] || s.options.Files.has(serviceOf(path)) {
		return nil, ErrUnknown
	}
	for asked := false; ; asked = true {
		m, answer, failure := s.look(path, !asked)
		switch {
		case m != nil:
			return m, nil
		case answer == nil && failure != nil:
			return nil, failure
		case answer == nil:
			return nil, ErrUnknown
		}
		select {
		case <-answer:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Known returns the method of a path if it is known, and nil otherwise. It waits for
// nothing.
func (s *Schema) Known(path string) *Method {
	if m := s.inFiles(path); m != nil {
		return m
	}
	if s.options.Files.has(serviceOf(path)) {
		return nil
	}
	m, _, _ := s.look(path, true)
	return m
}

// Lacks reports whether methods are described, and that of a path is not among them.
func (s *Schema) Lacks(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.options.Files != nil || s.methods != nil) && s.inFiles(path) == nil && s.methods[path] == nil
}

func (s *Schema) inFiles(path string) *Method {
	if s.options.Files == nil {
		return nil
	}
	return s.options.Files.methods[path]
}

// serviceOf returns what stands between the slashes of a path.
func serviceOf(path string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return service
}

// look returns the method, or what to wait for, or neither. If it may ask, and there is
// reason to, servers are asked.
func (s *Schema) look(path string, may bool) (m *Method, answer <-chan struct{}, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m = s.methods[path]
	due := time.Since(s.began) >= between
	if may && s.asking == nil && due && (m == nil || s.stale) {
		s.began, s.stale, s.asking = time.Now(), false, make(chan struct{})
		go s.ask() // ends within Options.Limit
	}
	if m == nil && may {
		answer = s.asking
	}
	return m, answer, s.failure
}

// ask has servers describe the services, and keeps what they say.
func (s *Schema) ask() {
	ctx, cancel := context.WithTimeout(context.Background(), s.options.Limit)
	defer cancel()
	methods, err := s.describe(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.failure == nil && s.options.Failed != nil {
		s.options.Failed(err)
	}
	s.failure = nil
	switch code := status.Code(err); {
	case err == nil:
		s.methods = methods
	case code == codes.Unimplemented, code == codes.Unknown:
		s.failure = ErrUndescribed
	default:
		s.failure = fmt.Errorf("%w: %s", ErrUnavailable, OneLine(status.Convert(err).Message()))
	}
	if err != nil {
		s.stale = true
	}
	close(s.asking)
	s.asking = nil
}

// describe has one conversation. Services that the server does not have are left out.
func (s *Schema) describe(ctx context.Context) (map[string]*Method, error) {
	r := NewReflection(s.options.Open)
	defer r.Close()
	all, services := map[string]*Method{}, s.options.Services
	if services == nil {
		var err error
		if services, err = r.Services(ctx); err != nil {
			return nil, err
		}
	}
	for _, service := range services {
		set, err := r.Files(ctx, service)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			continue
		} else if err != nil {
			return nil, err
		}
		methods, err := onlyOf(service, set)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, methods)
	}
	return all, nil
}

// onlyOf returns the methods of one service of a set.
func onlyOf(service string, set *descriptorpb.FileDescriptorSet) (map[string]*Method, error) {
	methods, err := methodsIn(set)
	maps.DeleteFunc(methods, func(path string, _ *Method) bool { return serviceOf(path) != service })
	return methods, err
}
