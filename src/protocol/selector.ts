/**
 * Route selectors. The text alone does not say whether a name is a region or a provider; the catalogue decides, because
 * it allows no name to be both.
 */

/** The selector that stands for the operator's approved selectors, in their order. No model key has this name. */
export const AUTO = 'auto'

const NAME = /^[A-Za-z0-9._-]+$/
const MAX_NAMES = 3

/** The parts of a concrete route. */
export interface RouteTriple {
  readonly modelKey: string
  readonly provider: string
  readonly region: string | undefined
}

/** Whether a text can name a model key, a provider or a region. */
export function isName(text: string): boolean {
  return NAME.test(text)
}

/** Whether a text has one of the selector forms: one to three names with slashes between. */
export function isSelector(text: string): boolean {
  const names = text.split('/', MAX_NAMES + 1)
  return names.length <= MAX_NAMES && names.every(isName)
}

/** Joins the defined names into a selector, in the order region, provider, model key. */
export function selectorOf(...names: readonly (string | undefined)[]): string {
  return names.filter((name) => name !== undefined).join('/')
}

/** The selector with all parts, which is accepted for every route, whatever its canonical id is. */
export function fullSelector(route: RouteTriple): string {
  return selectorOf(route.region, route.provider, route.modelKey)
}
