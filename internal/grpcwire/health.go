package grpcwire

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// HealthStatus is the answer of a health check, with the numbers of
// grpc.health.v1.HealthCheckResponse.ServingStatus.
type HealthStatus uint8

// The answers of a health check. HealthServiceUnknown is sent by Watch only;
// Check ends with NotFound instead.
const (
	HealthUnknown        HealthStatus = 0
	HealthServing        HealthStatus = 1
	HealthNotServing     HealthStatus = 2
	HealthServiceUnknown HealthStatus = 3
)

// The field numbers of the messages, and of an entry of a map.
const (
	healthServiceField protowire.Number = 1 // HealthCheckRequest.service, string
	healthStatusField  protowire.Number = 1 // HealthCheckResponse.status, enum
	healthListField    protowire.Number = 1 // HealthListResponse.statuses, map
	mapKeyField        protowire.Number = 1
	mapValueField      protowire.Number = 2
)

// ErrHealthRequest is returned for octets that are no HealthCheckRequest. The
// caller answers Internal, as gRPC servers do for a message they cannot read.
var ErrHealthRequest = errors.New("grpc health: not a HealthCheckRequest")

// ParseHealthCheckRequest reads a grpc.health.v1.HealthCheckRequest, without
// its prefix and not compressed.
//
// Shape: service is a part of msg, empty if the caller asks for the server as
// a whole. Fields that are not known are passed over.
// Errors: ErrHealthRequest.
// Source: gRPC Health Checking Protocol; R7.
func ParseHealthCheckRequest(msg []byte) (service []byte, err error) {
	for len(msg) > 0 {
		field, kind, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return nil, ErrHealthRequest
		}
		msg = msg[n:]
		if field == healthServiceField && kind == protowire.BytesType {
			service, n = protowire.ConsumeBytes(msg)
		} else {
			n = protowire.ConsumeFieldValue(field, kind, msg)
		}
		if n < 0 {
			return nil, ErrHealthRequest
		}
		msg = msg[n:]
	}
	if !utf8.Valid(service) {
		return nil, ErrHealthRequest
	}
	return service, nil
}

// AppendHealthCheckResponse appends a grpc.health.v1.HealthCheckResponse with
// its prefix.
// Source: gRPC Health Checking Protocol; R7.
func AppendHealthCheckResponse(dst []byte, status HealthStatus) []byte {
	if status == HealthUnknown { // the default value of a field is not sent
		return AppendPrefix(dst, Prefix{})
	}
	length := protowire.SizeTag(healthStatusField) + protowire.SizeVarint(uint64(status))
	dst = AppendPrefix(dst, Prefix{Length: uint32(length)})
	dst = protowire.AppendTag(dst, healthStatusField, protowire.VarintType)
	return protowire.AppendVarint(dst, uint64(status))
}

// AppendHealthListResponse appends a grpc.health.v1.HealthListResponse with its prefix,
// the services in any order.
// Source: gRPC Health Checking Protocol.
func AppendHealthListResponse(dst []byte, services map[string]HealthStatus) []byte {
	begin := len(dst)
	dst = append(dst, make([]byte, PrefixLen)...)
	for name, status := range services {
		value := AppendHealthCheckResponse(nil, status)[PrefixLen:]
		entry := protowire.AppendTag(nil, mapKeyField, protowire.BytesType)
		entry = protowire.AppendString(entry, name)
		entry = protowire.AppendTag(entry, mapValueField, protowire.BytesType)
		entry = protowire.AppendBytes(entry, value)
		dst = protowire.AppendTag(dst, healthListField, protowire.BytesType)
		dst = protowire.AppendBytes(dst, entry)
	}
	AppendPrefix(dst[:begin], Prefix{Length: uint32(len(dst) - begin - PrefixLen)})
	return dst
}
