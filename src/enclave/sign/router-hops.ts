import type { CachedEnvelope } from '../envelope/envelope-cache.ts'
import { describeRouterHop, type RouterHop, type RouterHopInputs } from './router-block.ts'

/** Returns the router's current hop, which is described once for each envelope and bundle, not for each receipt. */
export function createRouterHops(
  inputs: () => Omit<RouterHopInputs, 'envelope'> & { envelope: CachedEnvelope | undefined },
): () => RouterHop | undefined {
  let described: { readonly of: RouterHopInputs; readonly hop: RouterHop } | undefined
  return () => {
    const { envelope, ...rest } = inputs()
    if (envelope === undefined) return undefined
    const of = { envelope, ...rest }
    if (described === undefined || !isSame(described.of, of)) {
      described = { of, hop: describeRouterHop(of) }
    }
    return described.hop
  }
}

function isSame(left: RouterHopInputs, right: RouterHopInputs): boolean {
  return left.envelope === right.envelope && left.trustBundleJws === right.trustBundleJws
}
