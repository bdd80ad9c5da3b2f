import { errorFormatAt } from './error-format.ts'

/** The paths of the operator: what is unknown there is no model endpoint under a wrong base URL. */
const OPERATOR = /^\/(admin|console)(\/|$)/

/** A path may have thousands of segments, and a base URL has a few. */
const MAX_STRIPPED = 8

/**
 * Why a request to an unknown path missed a served one, if its client was given a wrong base URL: one without `/v1`,
 * with more than that, or with the path of an endpoint at its end.
 * @param served the paths of the endpoints under `/v1`, as the table of endpoints has them
 */
export function meantAddress(path: string, served: readonly string[]): string | undefined {
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
