// Package gosdk stands in for a module that not every Go module proxy serves.
// provider-kubernetes uses it only for the
// Nebius identity type, which the test never configures.
package gosdk

import (
	"context"
	"errors"

	"github.com/nebius/gosdk/auth"
)

type SDK struct{}
type Option struct{}
type Credentials struct{}

var errStub = errors.New("nebius identity is not compiled into this build")

func New(context.Context, ...Option) (*SDK, error)             { return nil, errStub }
func WithCredentials(Credentials) Option                        { return Option{} }
func ServiceAccountReader(auth.ServiceAccountReader) Credentials { return Credentials{} }
func (*SDK) BearerToken(context.Context) (auth.BearerToken, error) {
	return auth.BearerToken{}, errStub
}
