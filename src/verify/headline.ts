import type { Verdict } from './check.ts'
import type { ProviderStatus } from './receipt-provider.ts'
import type { ReceiptResult } from './receipt.ts'

/** A summary of a verdict in one line. */
export interface Statement {
  /** What is proven if every check holds. */
  readonly proven: string
  /** Whether a simulated platform was allowed, so that nothing is proven about any machine. */
  readonly simulated?: boolean
  /** What the verdict depends on besides the evidence. */
  readonly caveats?: readonly string[]
}

/** Appended to the statement where a simulated platform was allowed. */
export const ON_SIMULATED = ' ON A SIMULATED PLATFORM, which proves nothing about any machine'

/** The first line of a verdict. */
export function headline({ ok, checks }: Verdict, statement: Statement): string {
  const { proven, simulated = false, caveats = [] } = statement
  const where = simulated ? ON_SIMULATED : ''
  const failed = checks.filter((check) => !check.ok)
  if (!ok) {
    const names = failed.map(({ name }) => name).join(', ')
    return `NOT VALID${where}: ${failed.length} of ${checks.length} checks failed: ${names}.`
  }
  return [`VALID${where}: ${proven}.`, ...caveats].join(' ')
}

/** What is proven about the provider's hop, by how far it was verified. */
const PROVIDER: Readonly<Record<ProviderStatus, string>> = {
  unattested: 'The provider was not attested.',
  recorded: "The provider's hop is recorded by the router, not re-judged.",
  rejudged: "The provider's enclave was judged again here, under your own policy.",
}

/** The first line of a verdict about a receipt. */
export function receiptHeadline(result: ReceiptResult): string {
  const { outcome, simulated, provider } = result
  if (outcome === 'signature_only') {
    const where = simulated ? ', and the router itself calls it a simulated platform' : ''
    return `SIGNATURE ONLY: nothing was proven about the machine${where}. The receipt is unchanged since a key of the given key set signed it.`
  }
  const proven = 'this receipt was signed by a key that a verified router enclave holds'
  return headline(result, { proven, simulated, caveats: [PROVIDER[provider]] })
}
