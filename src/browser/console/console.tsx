import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { NO_INPUTS } from '../verifier/inputs.ts'
import { ApiFailure, createApi, type Api } from './api.ts'
import type { ConsoleDeps } from './deps.ts'
import { addScrape, type Point } from './history.ts'
import { readSamples, type Sample } from './metrics-text.ts'
import { Overview } from './overview.tsx'
import { Proof } from './proof.tsx'
import { Customers, Providers, Routes, Webhooks } from './tables.tsx'

const SCRAPE_INTERVAL_MS = 5000

const VIEWS = ['Overview', 'Routes', 'Providers', 'Customers', 'Webhooks', 'Proof'] as const
type View = (typeof VIEWS)[number]

/** The operator's console: signs in with an admin token, which stays in the memory of this page. */
export function Console({ deps }: { readonly deps: ConsoleDeps }) {
  const [api, setApi] = useState<Api>()
  return (
    <>
      <header class="banner">
        <h1>
          Confidential Model Router <small>Console</small>
        </h1>
        <nav aria-label="Pages">
          <a href="/console/try">Playground</a>
        </nav>
      </header>
      <main>
        {api === undefined ? (
          <SignIn signedIn={setApi} />
        ) : (
          <SignedIn api={api} deps={deps} signOut={() => setApi(undefined)} />
        )}
      </main>
    </>
  )
}

function SignIn({ signedIn }: { readonly signedIn: (api: Api) => void }) {
  const token = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState('')
  const submit = async () => {
    const api = createApi(token.current?.value.trim() ?? '')
    try {
      await api.text('/admin/metrics')
      signedIn(api)
    } catch (error) {
      const wrong = error instanceof ApiFailure && error.status === 401
      setProblem(wrong ? 'This is not an admin token of this router.' : String(error))
    }
  }
  return (
    <form
      class="narrow"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      <h2>Sign in</h2>
      <div class="field">
        <label for="token">Admin token</label>
        <input
          id="token"
          ref={token}
          type="password"
          autocomplete="off"
          aria-describedby="token-hint token-fault"
        />
        <p class="hint" id="token-hint">
          Kept in the memory of this page alone: closing or reloading it signs out.
        </p>
        <p class="fault" id="token-fault" role="alert">
          {problem}
        </p>
      </div>
      <button type="submit" class="go">
        Sign in
      </button>
    </form>
  )
}

interface SignedInProps {
  readonly api: Api
  readonly deps: ConsoleDeps
  readonly signOut: () => void
}

function SignedIn({ api, deps, signOut }: SignedInProps) {
  const [view, setView] = useState<View>('Overview')
  const [inputs, setInputs] = useState(NO_INPUTS)
  const { points, now, problem } = useScrapes(api, deps)
  const lists = { api, now }
  return (
    <>
      <nav class="views" aria-label="Views">
        {VIEWS.map((one) => (
          <button
            key={one}
            type="button"
            aria-current={view === one ? 'page' : undefined}
            onClick={() => setView(one)}
          >
            {one}
          </button>
        ))}
        <button type="button" class="end" onClick={signOut}>
          Sign out
        </button>
      </nav>
      {problem !== '' && (
        <p class="fault" role="alert">
          {problem}
        </p>
      )}
      {view === 'Overview' && <Overview points={points} />}
      {view === 'Routes' && <Routes {...lists} />}
      {view === 'Providers' && <Providers {...lists} />}
      {view === 'Customers' && <Customers {...lists} />}
      {view === 'Webhooks' && <Webhooks {...lists} />}
      {view === 'Proof' && (
        <Proof
          deps={deps}
          inputs={inputs}
          change={(changes) => setInputs((before) => ({ ...before, ...changes }))}
        />
      )}
    </>
  )
}

/** Scrapes the metrics every few seconds while a user is signed in. */
function useScrapes(api: Api, { now, every }: ConsoleDeps) {
  const before = useRef<{ at: number; samples: readonly Sample[] }>(undefined)
  const [points, setPoints] = useState<readonly Point[]>([])
  const [at, setAt] = useState(() => now() / 1000)
  const [problem, setProblem] = useState('')
  const scrape = useMemo(
    () => async () => {
      try {
        const found = { at: now() / 1000, samples: readSamples(await api.text('/admin/metrics')) }
        const last = before.current
        before.current = found
        setPoints((known) => addScrape(known, last, found))
        setAt(found.at)
        setProblem('')
      } catch (error) {
        setProblem(error instanceof Error ? error.message : 'The router does not answer.')
      }
    },
    [api, now],
  )
  useEffect(() => {
    void scrape()
    return every(SCRAPE_INTERVAL_MS, () => void scrape())
  }, [scrape, every])
  return { points, now: at, problem }
}
