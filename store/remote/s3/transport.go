package s3

import (
	"errors"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"

	"symbolize/store"
	"symbolize/store/httpretry"
)

// maxAnswer limits answers that the client library reads as a whole: all but the content of an
// object. A page of a listing has at most 1,000 keys of 1,024 bytes.
const maxAnswer = 4 << 20

// transport returns the transport of requests: each try is watched, and requests are repeated.
func (o *Options) transport() http.RoundTripper {
	base := o.base
	if base == nil {
		base = http.DefaultTransport.(*http.Transport).Clone()
	}
	watched := &httpretry.Watched{Base: base, Period: o.Stall, TooLarge: store.ErrTooLarge,
		MaxAnswer: func(resp *http.Response) int64 {
			if resp.Request.URL.RawQuery == "" && resp.StatusCode == http.StatusOK {
				return 0
			}
			return maxAnswer
		}}
	client := &http.Client{Transport: watched,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &retryablehttp.RoundTripper{Client: httpretry.New(httpretry.Options{Client: client,
		Retries: o.Retries, Wait: o.Wait,
		Final: func(err error) bool { return errors.Is(err, httpretry.ErrStalled) }})}
}
