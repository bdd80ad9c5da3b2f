/** The token of `Authorization: Bearer <token>` (RFC 6750 section 2.1); the scheme's case does not matter. */
export function readBearer(request: Request): string | undefined {
  const header = request.headers.get('authorization') ?? ''
  return /^Bearer +(\S+)$/i.exec(header)?.[1]
}
