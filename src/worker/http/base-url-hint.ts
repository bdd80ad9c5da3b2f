import { errorFormatAt } from './error-format.ts'

/** The operator's paths: an unknown path there is not a model endpoint under a wrong base URL. */
const OPERATOR = /^\/(admin|console)(\/|$)/

/**
 * Maximum number of leading segments that are tried as the base URL's: a path may have thousands of segments, but a base URL
 * has few.
 */
const MAX_STRIPPED = 8

/**
 * The message for a request to an unknown path whose client seems to have a wrong base URL: one without `/v1`, with more
 * than that, or ending with the path of an endpoint.
 * @param served the paths of the endpoints under `/v1`, as the table of endpoints has them
 * @returns undefined where the path resembles no endpoint
 */
export function baseUrlHint(path: string, served: readonly string[]): string | undefined {
  if (OPERATOR.test(path)) return undefined
  const segments = path.split('/').filter((segment) => segment !== '')
  const tails = segments
    .slice(0, MAX_STRIPPED)
    .map((_, index) => `/v1/${segments.slice(index).join('/')}`)
  const meant = tails.find((tail) => served.some((pattern) => patternOf(pattern).test(tail)))
  if (meant === undefined) return undefined
  const base =
    errorFormatAt(meant) === 'anthropic'
      ? "the address of this router without any path, for Anthropic's libraries, which add /v1 themselves"
      : 'the address of this router followed by /v1, without the path of an endpoint'
  return `This endpoint is at ${meant}: check the base URL of your client. It must be ${base}.`
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/:\w+[+]/g, '.+').replaceAll(/:\w+/g, '[^/]+')}$`)
}
