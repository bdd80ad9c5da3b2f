import { useEffect, useState } from 'preact/hooks'
import { createClient, type Client, type Proof } from '../../client/browser.ts'
import { AttestationRefused } from '../../client/errors.ts'
import { InputFault, readRoot, type Inputs } from '../verifier/inputs.ts'
import type { ConsoleDeps } from './deps.ts'

/** The state of the verification of this router by the page. */
export type Guest =
  | { readonly state: 'unknown' }
  | { readonly state: 'proving' }
  | { readonly state: 'refused'; readonly reason: string; readonly failed: readonly string[] }
  | { readonly state: 'proven'; readonly client: Client; readonly proof: Proof }

/**
 * Verifies the router against a release root, again whenever the root or `allowSimulated` changes. Without a root it
 * sends no request.
 */
export function useGuest({ rootKey, allowSimulated }: Inputs, deps: ConsoleDeps): Guest {
  const [guest, setGuest] = useState<Guest>({ state: 'unknown' })
  useEffect(() => {
    let current = true
    const show = (next: Guest) => current && setGuest(next)
    if (rootKey.trim() === '') show({ state: 'unknown' })
    else {
      show({ state: 'proving' })
      prove({ rootKey, allowSimulated }, deps).then(show, (error: unknown) =>
        show(refusalOf(error)),
      )
    }
    return () => {
      current = false
    }
  }, [rootKey, allowSimulated, deps])
  return guest
}

async function prove(
  { rootKey, allowSimulated }: Pick<Inputs, 'rootKey' | 'allowSimulated'>,
  { origin, now, nonce, state }: ConsoleDeps,
): Promise<Guest> {
  const client = createClient(
    {
      baseURL: origin,
      rootKey: readRoot(rootKey),
      policy: { allowSimulated },
      transport: 'ehbp',
      state,
    },
    { now, nonce },
  )
  const [proof] = await client.verify()
  if (proof === undefined) throw new InputFault('rootKey', 'The router gave no proof.')
  return { state: 'proven', client, proof }
}

function refusalOf(error: unknown): Guest {
  const reason = error instanceof Error ? error.message : 'The router cannot be judged.'
  const failed = error instanceof AttestationRefused ? error.failed : []
  return { state: 'refused', reason, failed }
}
