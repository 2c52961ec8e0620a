package main

// product is one of our programs, as it is packed.
type product struct {
	Name    string
	Summary string
	Short   string // as a manual begins
	About   string // a few lines of plain text
	Module  string // folder of its module, below the root
	Build   string // what make builds it by: a target, and the variable with the file to write
	Into    string
}

// service is what serves calls.
func service() product {
	return product{
		Name: "cabrank", Summary: summary, Short: "balance gRPC calls over supervised workers", About: about,
		Module: ".", Build: "build", Into: "BIN",
	}
}

// lab is what measures services: nobody needs it in the image of a worker.
func lab() product {
	return product{
		Name: "cabrank-lab", Summary: "Loads and comparisons for gRPC services and their balancers",
		Short: "measure what calls cost",
		About: `cabrank-lab makes loads on any gRPC or WebSocket service, compares ways to
balance and to connect by experiments with verdicts, and says how many workers
a forecast load needs. "cabrank lab" starts it.`,
		Module: "lab", Build: "lab", Into: "LAB",
	}
}

// packers lists what the product is packed as.
func (p product) packers() []packer {
	if p.Name == lab().Name {
		return []packer{materials, forEach(archive), forEach(debian), images}
	}
	return []packer{
		materials,
		forEach(wheel),
		npm,
		forEach(npmProgram),
		forEach(archive),
		forEach(gem),
		forEach(debian),
		images,
	}
}
