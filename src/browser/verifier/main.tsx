// oxlint-disable-next-line import/no-unassigned-import -- imported for its side effect, before all others
import '../parts/no-eval.ts'
import { render } from 'preact'
import * as z from 'zod'
import { toHex } from '../../protocol/bytes.ts'
import { memoryState } from '../../client/memory-state.ts'
import { confineTo } from '../parts/confine.ts'
import { providerJudge } from '../../verify/providers/provider-judge.ts'
import { browserState } from '../parts/browser-state.ts'
import { NO_INPUTS, type Inputs } from './inputs.ts'
import { Page, type PageProps, type Subject } from './page.tsx'

/** The page's entry point: connects the page to the browser's storage, clock and random numbers. */

const RESUME = 'cmr-verifier-resume'
const LAST = 'cmr-verifier-last'

const lastSchema = z.object({ router: z.string(), rootKey: z.string(), environment: z.string() })
const fileSchema = z.object({ name: z.string(), base64: z.string(), bytes: z.number() })
const resumeSchema = z.object({
  subject: z.enum(['router', 'receipt']),
  inputs: z.object({
    router: z.string(),
    rootKey: z.string(),
    environment: z.string(),
    allowSimulated: z.boolean(),
    requireCrl: z.boolean(),
    crl: fileSchema.optional(),
    logPolicy: fileSchema.optional(),
    receipt: z.string(),
    receiptId: z.string(),
    evidence: z.array(fileSchema),
    keys: fileSchema.optional(),
    bundle: fileSchema.optional(),
    request: fileSchema.optional(),
    response: fileSchema.optional(),
    providerPolicy: z.string(),
  }),
})

/** Some browsers refuse storage to pages from local files; then nothing is stored. */
function storageOf(kind: 'localStorage' | 'sessionStorage'): Storage | undefined {
  try {
    return globalThis[kind]
  } catch {
    return undefined
  }
}

const local = storageOf('localStorage')
const session = storageOf('sessionStorage')

function firstInputs(): PageProps['first'] {
  const resumed = resumeSchema.safeParse(parse(session?.getItem(RESUME)))
  session?.removeItem(RESUME)
  if (resumed.success) {
    const { subject, inputs } = resumed.data
    return { subject, inputs: { ...NO_INPUTS, ...inputs }, start: true }
  }
  const last = lastSchema.safeParse(parse(local?.getItem(LAST)))
  return { subject: 'router', inputs: { ...NO_INPUTS, ...last.data }, start: false }
}

function parse(text: string | null | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    return null
  }
}

/** A page that has connected to one router is reloaded before it connects to another. API keys are not carried over. */
function confine(origin: string, subject: Subject, inputs: Inputs): boolean {
  if (confineTo(origin, document)) return true
  const { apiKey: _, ...kept } = inputs
  session?.setItem(RESUME, JSON.stringify({ subject, inputs: kept }))
  location.reload()
  return false
}

function remember({ router, rootKey, environment }: Inputs): void {
  local?.setItem(LAST, JSON.stringify({ router, rootKey, environment }))
}

const unable = globalThis.isSecureContext
  ? undefined
  : 'Browsers verify signatures only on pages that came over https or from a file. Save this page and open the file.'

const root = document.querySelector('#page')
if (root) {
  render(
    <Page
      now={() => Date.now()}
      nonce={() => toHex(crypto.getRandomValues(new Uint8Array(32)))}
      state={local ? browserState(local) : memoryState()}
      providerJudge={providerJudge}
      first={firstInputs()}
      confine={confine}
      remember={remember}
      unable={unable}
    />,
    root,
  )
}
