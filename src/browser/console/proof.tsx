import { useState } from 'preact/hooks'
import { createRouterReader, RouterUnavailable } from '../parts/router-reader.ts'
import { InputFault, readRequirements, type Inputs } from '../verifier/inputs.ts'
import { judgeRouter, type RouterReport } from '../verifier/judge-router.ts'
import { Report } from '../verifier/report.tsx'
import { RouterFacts } from '../verifier/facts.tsx'
import { CheckField, RootField } from '../verifier/fields.tsx'
import type { ConsoleDeps } from './deps.ts'
import { Panel } from './panel.tsx'

export interface TrustProps {
  readonly inputs: Inputs
  readonly change: (changes: Partial<Inputs>) => void
}

/** The form with the requirements on the router. */
export function TrustFields({ inputs, change }: TrustProps) {
  return (
    <>
      <RootField inputs={inputs} change={change} fault={undefined} />
      <CheckField
        inputs={inputs}
        change={change}
        name="allowSimulated"
        label="Accept a simulated platform"
        hint="Proves nothing: for a local stack."
      />
    </>
  )
}

/** This router's own proof, verified in this browser. */
export function Proof({ inputs, change, deps }: TrustProps & { readonly deps: ConsoleDeps }) {
  const [report, setReport] = useState<RouterReport>()
  const [problem, setProblem] = useState('')
  const verify = async () => {
    try {
      setProblem('')
      setReport(
        await judgeRouter(createRouterReader(new URL(deps.origin)), readRequirements(inputs), deps),
      )
    } catch (error) {
      const known = error instanceof RouterUnavailable || error instanceof InputFault
      setProblem(known ? error.message : 'The proof cannot be judged.')
    }
  }
  return (
    <Panel
      title="The router's own proof"
      takesFocus
      lead="Judged in this browser, by code that this very router served: for a verdict that you can rely on, use the verifier page of a release that you checked."
    >
      <form
        class="narrow"
        onSubmit={(event) => {
          event.preventDefault()
          void verify()
        }}
      >
        <TrustFields inputs={inputs} change={change} />
        {problem !== '' && (
          <p class="fault" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="go">
          Verify
        </button>
      </form>
      {report && (
        <Report kind="router" report={report}>
          <RouterFacts report={report} router={deps.origin} />
        </Report>
      )}
    </Panel>
  )
}
