/** What a worker says of a request that the daemon is to sign a receipt for; the route is `nova/m`. */
export const CLAIMS = {
  jti: '2f1c6a3e-8f5b-4c1e-9c55-0d9f1b2a3c4d',
  iat: 1_700_000_000,
  endpoint: '/v1/chat/completions' as const,
  requested_route: 'm',
  routed_model: 'nova/m',
  prompt_tokens: 1,
  completion_tokens: 1,
  request_digest: 'a1'.repeat(32),
  response_digest: 'a2'.repeat(32),
  digest_version: 1,
  failover: false,
  client_request_digest: 'a3'.repeat(32),
  client_response_digest: 'a4'.repeat(32),
}
