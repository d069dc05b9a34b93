package s3

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Options are the place of a bucket and the limits of requests to it.
type Options struct {
	// Stall is the time in which some of a response must arrive.
	Stall time.Duration
	// Retries is how often a request is repeated.
	Retries int
	// Wait is the pause before the first repetition; it doubles with each.
	Wait time.Duration

	bucket, prefix string
	host           string // and port
	secure         bool
	region         string
	lookup         minio.BucketLookupType
	getenv         func(string) string
	base           http.RoundTripper // nil for the default of net/http
}

// The defaults of Options.
const (
	defaultStall   = time.Minute
	defaultRetries = 2
	defaultWait    = time.Second
)

const amazon = "s3.amazonaws.com"

// Parse reads s3://BUCKET/PREFIX?endpoint=URL&region=NAME&timeout=TIME&retries=N. The defaults of
// endpoint and region are AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION and AWS_DEFAULT_REGION.
func Parse(text string, getenv func(string) string) (*Options, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "s3" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%s: it is s3://BUCKET/PREFIX", u.Redacted())
	}
	o := &Options{Stall: defaultStall, Retries: defaultRetries, Wait: defaultWait, bucket: u.Host,
		host: amazon, secure: true, getenv: getenv,
		region: cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"))}
	if o.prefix = strings.Trim(u.Path, "/"); o.prefix != "" {
		o.prefix += "/"
	}
	endpoint := cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"))
	for name, values := range u.Query() {
		value := values[len(values)-1]
		switch name {
		case "endpoint":
			endpoint = value
		case "region":
			o.region = value
		case "timeout":
			o.Stall, err = time.ParseDuration(value)
		case "retries":
			o.Retries, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("it is endpoint, region, timeout or retries")
		}
		if err != nil || o.Stall <= 0 || o.Retries < 0 {
			return nil, fmt.Errorf("%s: ?%s=%s: %v", text, name, value, err)
		}
	}
	return o, o.setEndpoint(endpoint)
}

// setEndpoint sets a server other than Amazon's.
func (o *Options) setEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("endpoint %q: it is http://HOST:PORT or https://HOST:PORT", endpoint)
	}
	o.host, o.secure = u.Host, u.Scheme == "https"
	if !strings.HasSuffix(u.Hostname(), ".amazonaws.com") {
		o.lookup = minio.BucketLookupPath
		o.region = cmp.Or(o.region, "us-east-1")
	}
	return nil
}

// credentials returns the credentials of the environment, of the file of AWS's tools, or of the
// role of the task or service if its variables are set. Without any, requests are anonymous.
func (o *Options) credentials() *credentials.Credentials {
	env := o.getenv
	var chain []credentials.Provider
	if key := env("AWS_ACCESS_KEY_ID"); key != "" {
		return credentials.NewStaticV4(key, env("AWS_SECRET_ACCESS_KEY"), env("AWS_SESSION_TOKEN"))
	}
	file := env("AWS_SHARED_CREDENTIALS_FILE")
	if home := env("HOME"); file == "" && home != "" {
		file = filepath.Join(home, ".aws", "credentials")
	}
	if file != "" {
		chain = append(chain, &credentials.FileAWSCredentials{Filename: file,
			Profile: cmp.Or(env("AWS_PROFILE"), "default")})
	}
	if env("AWS_WEB_IDENTITY_TOKEN_FILE") != "" || env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" ||
		env("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "" {
		chain = append(chain, &credentials.IAM{})
	}
	return credentials.NewChainCredentials(chain)
}
