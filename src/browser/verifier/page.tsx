import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { ChainPicture } from '../chain/chain-picture.tsx'
import { drawPicture } from '../chain/picture.ts'
import { Latest } from '../parts/latest.ts'
import {
  createRouterReader,
  parseRouterAddress,
  RouterUnavailable,
} from '../parts/router-reader.ts'
import { ReceiptFacts, RouterFacts } from './facts.tsx'
import { ReceiptForm, RouterForm } from './forms.tsx'
import { InputFault, readRequirements, readReceiptInput, type Inputs } from './inputs.ts'
import { judgeReceipt, type ReceiptReport } from './judge-receipt.ts'
import { judgeRouter, type RouterReport, type PageDeps } from './judge-router.ts'
import { Report } from './report.tsx'

export type Subject = 'router' | 'receipt'

export interface PageProps extends PageDeps {
  readonly first: { readonly subject: Subject; readonly inputs: Inputs; readonly start: boolean }
  /** Allows the page to connect to one origin; false when this needs a reload, after which the page resumes. */
  readonly confine: (origin: string, subject: Subject, inputs: Inputs) => boolean
  readonly remember: (inputs: Inputs) => void
  /** Why this browser cannot verify anything. */
  readonly unable: string | undefined
}

type Outcome =
  | { readonly kind: 'none' }
  | { readonly kind: 'working' }
  | { readonly kind: 'fault'; readonly message: string; readonly fault: InputFault | undefined }
  | { readonly kind: 'router'; readonly report: RouterReport; readonly router: string }
  | { readonly kind: 'receipt'; readonly report: ReceiptReport }

const NOT_JUDGED: Outcome = { kind: 'none' }

const SUBJECTS = { router: 'A running router', receipt: 'A receipt' } as const

export function Page(props: PageProps) {
  const { first, unable } = props
  const [subject, setSubject] = useState<Subject>(first.subject)
  const [inputs, setInputs] = useState(first.inputs)
  const { outcome, latest, outdate } = useOutcome()
  const verify = useCallback(() => {
    latest.set({ kind: 'working' })
    void latest.await(judge(subject, inputs, props))
  }, [latest, subject, inputs, props])
  useEffect(() => {
    if (first.start) verify()
    // Runs once, with the inputs of the page before the reload.
  }, [])
  const fault = outcome.kind === 'fault' ? outcome.fault : undefined
  const fields = {
    inputs,
    fault,
    change: (changes: Partial<Inputs>) => {
      setInputs((before) => ({ ...before, ...changes }))
      outdate()
    },
  }
  return (
    <>
      <Banner />
      <main>
        <form
          noValidate
          onSubmit={(event) => {
            event.preventDefault()
            if (unable === undefined) verify()
          }}
        >
          <SubjectChoice
            subject={subject}
            choose={(chosen) => {
              setSubject(chosen)
              latest.set(NOT_JUDGED)
            }}
          />
          {subject === 'router' ? <RouterForm {...fields} /> : <ReceiptForm {...fields} />}
          {unable && (
            <p class="fault" role="alert">
              {unable}
            </p>
          )}
          <button
            type="submit"
            class="go"
            disabled={unable !== undefined || outcome.kind === 'working'}
          >
            {outcome.kind === 'working' ? 'Verifying …' : 'Verify'}
          </button>
        </form>
        <section class="outcome" aria-live="polite" aria-busy={outcome.kind === 'working'}>
          <OutcomeView outcome={outcome} subject={subject} />
        </section>
      </main>
    </>
  )
}

function useOutcome() {
  const [outcome, setOutcome] = useState<Outcome>(NOT_JUDGED)
  const latest = useMemo(() => new Latest<Outcome>(setOutcome), [])
  return {
    outcome,
    latest,
    /** Hides the verdict when an input changes: a verdict applies only to the inputs that it was made for. */
    outdate: () => {
      if (outcome.kind !== 'fault') latest.set(NOT_JUDGED)
    },
  }
}

/** The logo: two links of a chain. */
function Mark() {
  return (
    <svg class="mark" viewBox="0 0 40 24" aria-hidden="true">
      <rect x="2" y="5" width="22" height="14" rx="7" />
      <rect x="16" y="5" width="22" height="14" rx="7" />
    </svg>
  )
}

function Banner() {
  return (
    <header class="banner">
      <h1>
        <Mark />
        Confidential Model Router <small>Verifier</small>
      </h1>
      <p>
        Runs in this browser alone. It trusts AMD's roots, which are built in, and the release root
        that you give; it speaks to the router that you name and to nobody else.
      </p>
    </header>
  )
}

function SubjectChoice({
  subject,
  choose,
}: {
  readonly subject: Subject
  readonly choose: (subject: Subject) => void
}) {
  return (
    <fieldset class="subject">
      <legend>What do you want to verify?</legend>
      {(['router', 'receipt'] as const).map((one) => (
        <label key={one}>
          <input
            type="radio"
            name="subject"
            value={one}
            checked={subject === one}
            onChange={() => choose(one)}
          />
          <span>{SUBJECTS[one]}</span>
        </label>
      ))}
    </fieldset>
  )
}

const NOTHING = { checks: [], malformed: [], read: [] } as const

function OutcomeView({
  outcome,
  subject,
}: {
  readonly outcome: Outcome
  readonly subject: Subject
}) {
  if (outcome.kind === 'none') {
    return (
      <section class="before">
        <h2>What will be checked</h2>
        <ChainPicture idle boxes={drawPicture(subject, NOTHING)} />
      </section>
    )
  }
  if (outcome.kind === 'working') return <p class="working">Asking the router, then checking …</p>
  if (outcome.kind === 'fault') {
    return (
      <div class="verdict" data-state="open" role="alert">
        <span class="seal" aria-hidden="true">
          !
        </span>
        <div>
          <h2>Nothing was judged</h2>
          <p>{outcome.message}</p>
        </div>
      </div>
    )
  }
  if (outcome.kind === 'router') {
    return (
      <Report kind="router" report={outcome.report}>
        <RouterFacts report={outcome.report} router={outcome.router} />
      </Report>
    )
  }
  return (
    <Report kind="receipt" report={outcome.report}>
      <ReceiptFacts report={outcome.report} />
    </Report>
  )
}

/** Never rejects: every failure is an outcome. */
async function judge(subject: Subject, inputs: Inputs, props: PageProps): Promise<Outcome> {
  try {
    const requirements = readRequirements(inputs)
    const named = inputs.router.trim() !== ''
    if (subject === 'router' && !named) throw new InputFault('router', 'Name the router.')
    const address = named ? parseRouterAddress(inputs.router) : undefined
    props.remember(inputs)
    if (address && !props.confine(address.origin, subject, inputs)) return { kind: 'working' }
    const router = address && createRouterReader(address)
    if (subject === 'router' && router !== undefined) {
      const report = await judgeRouter(router, requirements, props)
      return { kind: 'router', report, router: inputs.router }
    }
    const report = await judgeReceipt(readReceiptInput(inputs), router, requirements, props)
    return { kind: 'receipt', report }
  } catch (error) {
    return faultOf(error)
  }
}

function faultOf(error: unknown): Outcome {
  if (error instanceof InputFault) return { kind: 'fault', message: error.message, fault: error }
  if (error instanceof RouterUnavailable || error instanceof MalformedEvidence) {
    return { kind: 'fault', message: error.message, fault: undefined }
  }
  console.error(error)
  const message = 'The verifier failed. This is a fault of this page.'
  return { kind: 'fault', message, fault: undefined }
}
