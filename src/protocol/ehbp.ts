/**
 * Names of the Encrypted HTTP Body Protocol (EHBP) 0.3.1: request and answer bodies encrypted by HPKE (RFC 9180), for
 * clients that cannot see the TLS key of their connection. Headers, paths and statuses stay readable.
 */

/** Request header: the encapsulated key, 32 bytes in lowercase hex. Present exactly where the body is encrypted. */
export const ENCAPSULATED_KEY_HEADER = 'ehbp-encapsulated-key'

/** Response header: the nonce of the answer's keys, 32 bytes in lowercase hex. Present exactly where it is encrypted. */
export const RESPONSE_NONCE_HEADER = 'ehbp-response-nonce'

/** The path at which the HPKE key configuration is served, and its media type (RFC 9458 section 3). */
export const KEY_CONFIG_PATH = '/.well-known/hpke-keys'
export const KEY_CONFIG_TYPE = 'application/ohttp-keys'

/**
 * `type` of the problem (RFC 9457) for a key that is no longer in use; such an answer has status 422 and is not
 * encrypted.
 */
export const KEY_CONFIG_PROBLEM = 'urn:ietf:params:ehbp:error:key-config'
export const PROBLEM_TYPE = 'application/problem+json'

/** HPKE `info` of a request, and the exporter context of its answer. */
export const REQUEST_INFO = 'ehbp request'
export const RESPONSE_LABEL = 'ehbp response'

/** Bytes of the exported secret and of the response nonce. */
export const SECRET_BYTES = 32
export const RESPONSE_NONCE_BYTES = 32

/** Length of the AES-256-GCM tag of each frame, bytes. */
export const TAG_BYTES = 16
