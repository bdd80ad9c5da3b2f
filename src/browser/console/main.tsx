// oxlint-disable-next-line import/no-unassigned-import -- imported for its side effect, before all others
import '../parts/no-eval.ts'
import { render } from 'preact'
import { toHex } from '../../protocol/bytes.ts'
import { memoryState } from '../../client/memory-state.ts'
import { API } from './api.ts'
import { Console } from './console.tsx'
import type { ConsoleDeps } from './deps.ts'
import { Playground } from './try.tsx'

/** The console's entry point: reads what it needs from the browser, and selects one of the two pages. */

const deps: ConsoleDeps = {
  origin: location.origin,
  now: () => Date.now(),
  nonce: () => toHex(crypto.getRandomValues(new Uint8Array(32))),
  state: memoryState(),
  every: (milliseconds, work) => {
    const timer = setInterval(work, milliseconds)
    return () => clearInterval(timer)
  },
}

const root = document.querySelector('#page')
if (root) {
  const page =
    location.pathname === '/console/try' ? (
      <Playground deps={deps} />
    ) : (
      <Console api={API} deps={deps} />
    )
  render(page, root)
}
