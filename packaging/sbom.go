package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// materials is the list of what is in the programs, for those who look known faults up by
// it. It has no serial number, which would be another one each time.
//
// Source: CycloneDX 1.6.
func materials(r *release) ([]artifact, error) {
	parts := []cdx.Component{standardLibrary(r)}
	for _, m := range r.Modules {
		part, err := m.component()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	product := cdx.Component{
		BOMRef: r.Name, Type: cdx.ComponentTypeApplication, Name: r.Name, Version: r.Version, Description: r.Summary,
		PackageURL: golang(strings.TrimPrefix(homepage, "https://"), "v"+r.Version), Licenses: licensed(license),
		ExternalReferences: &[]cdx.ExternalReference{{URL: homepage, Type: cdx.ERTypeVCS}},
		Properties:         &[]cdx.Property{{Name: "cabrank:commit", Value: r.Commit}},
	}
	edges := []cdx.Dependency{{Ref: product.BOMRef}}
	for _, p := range r.Programs {
		c, uses := p.component(r)
		parts, edges = append(parts, c), append(edges, uses)
		edges[0].Dependencies = joined(edges[0].Dependencies, c.BOMRef)
	}
	list := cdx.NewBOM()
	list.Metadata = &cdx.Metadata{Timestamp: r.Date.Format(time.RFC3339), Component: &product}
	list.Components, list.Dependencies = &parts, &edges
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(list, cdx.SpecVersion1_6)
	return []artifact{{Name: r.Name + "-" + r.Version + ".cdx.json", Content: out.Bytes()}}, err
}

// component is a program, and what it has in it.
func (p program) component(r *release) (cdx.Component, cdx.Dependency) {
	sum := sha256.Sum256(p.Content)
	c := cdx.Component{
		BOMRef: r.Name + "-" + p.String(), Type: cdx.ComponentTypeApplication, Name: r.Name + "-" + p.String(), Version: r.Version,
		Licenses: licensed(license), Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Properties: &[]cdx.Property{{Name: "GOOS", Value: p.OS}, {Name: "GOARCH", Value: p.Arch}},
	}
	uses := cdx.Dependency{Ref: c.BOMRef, Dependencies: &[]string{standardLibrary(r).BOMRef}}
	for _, m := range r.Modules {
		if slices.Contains(m.In, p.String()) {
			uses.Dependencies = joined(uses.Dependencies, golang(m.Path, m.Version))
		}
	}
	return c, uses
}

func joined(all *[]string, one string) *[]string {
	if all == nil {
		all = &[]string{}
	}
	more := append(*all, one)
	return &more
}

// standardLibrary is what every program in Go has.
func standardLibrary(r *release) cdx.Component {
	version := strings.TrimPrefix(r.Go, "go")
	url := golang("std", version)
	return cdx.Component{
		BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: "std", Version: version, PackageURL: url,
		Licenses: licensed("BSD-3-Clause"),
	}
}

// component is a module. Its hash is that of go.sum, in hexadecimal digits: of the list of
// its files with the hash of each.
func (m module) component() (cdx.Component, error) {
	url := golang(m.Path, m.Version)
	c := cdx.Component{
		BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url,
		Licenses: licensed(m.License),
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) != sha256.Size {
		return c, fmt.Errorf("%s has no sum of go.sum, but %q", m, m.Sum)
	}
	c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	return c, nil
}

func licensed(id string) *cdx.Licenses {
	return &cdx.Licenses{{License: &cdx.License{ID: id}}}
}

// golang is the package URL of a module. Source: the type golang of the purl specification.
func golang(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}
