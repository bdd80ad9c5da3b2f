import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { NO_INPUTS } from '../verifier/inputs.ts'
import { ApiFailure, type Api, type Session } from './api.ts'
import { Banner } from './banner.tsx'
import { CustomerView } from './customer.tsx'
import { Customers } from './customers.tsx'
import type { ConsoleDeps } from './deps.ts'
import { ago } from './format.ts'
import { Overview } from './overview.tsx'
import { usePlace, type Place } from './place.ts'
import { Proof } from './proof.tsx'
import { Providers } from './providers.tsx'
import { Audit, Webhooks } from './records.tsx'
import { RequestView } from './request.tsx'
import { Routes } from './routes.tsx'
import { SignIn } from './sign-in.tsx'
import type { ViewProps } from './view.ts'

const POLL_INTERVAL_MS = 10_000

interface ShownProps extends ViewProps {
  readonly place: Place
  readonly deps: ConsoleDeps
}

/** The views, by the first part of the address fragment. */
const VIEWS: readonly (readonly [
  place: string,
  name: string,
  View: (props: ShownProps) => preact.JSX.Element,
])[] = [
  ['overview', 'Overview', Overview],
  ['routes', 'Routes', Routes],
  ['providers', 'Providers', Providers],
  [
    'customers',
    'Customers',
    ({ place, deps: _deps, ...props }) =>
      place.id === undefined ? (
        <Customers {...props} after={place.query.get('after') ?? undefined} />
      ) : (
        <CustomerView key={place.id} {...props} id={place.id} />
      ),
  ],
  ['requests', 'Requests', ({ place, ...props }) => <RequestView {...props} id={place.id} />],
  ['webhooks', 'Webhooks', Webhooks],
  [
    'audit',
    'Audit',
    ({ place, ...props }) => <Audit {...props} before={place.query.get('before') ?? undefined} />,
  ],
  ['proof', 'Proof', OwnProof],
]

/** The operator's console. */
export function Console({ api, deps }: { readonly api: Api; readonly deps: ConsoleDeps }) {
  const [session, setSession] = useState<Session | 'none' | 'unknown'>('unknown')
  const [message, setMessage] = useState('')
  useEffect(() => {
    api.session().then(setSession, () => setSession('none'))
  }, [api])
  const ended = useCallback((why: string) => {
    setMessage(why)
    setSession('none')
  }, [])
  const signedIn = useCallback((begun: Session) => {
    setMessage('')
    setSession(begun)
  }, [])
  return (
    <>
      <Banner name="Console" other={{ href: '/console/try', name: 'Playground' }} />
      {session === 'unknown' && (
        <main>
          <p class="working" role="status">
            Loading …
          </p>
        </main>
      )}
      {session === 'none' && <SignIn api={api} message={message} signedIn={signedIn} />}
      {typeof session === 'object' && (
        <SignedIn api={api} deps={deps} session={session} ended={ended} />
      )}
    </>
  )
}

interface SignedInProps {
  readonly api: Api
  readonly deps: ConsoleDeps
  readonly session: Session
  readonly ended: (message: string) => void
}

function SignedIn({ api, deps, session, ended }: SignedInProps) {
  const place = usePlace()
  const { look, now } = useLooks(deps)
  const [problem, setProblem] = useState('')
  const [, name, View] = VIEWS.find(([view]) => view === place.view) ?? FIRST
  const signOut = async () => {
    try {
      await api.signOut()
      ended('You are signed out.')
    } catch (error) {
      const over = error instanceof ApiFailure && error.status === 401
      if (over) ended('You are signed out.')
      else setProblem('The router does not answer: you are still signed in.')
    }
  }
  return (
    <>
      <nav class="views" aria-label="Views">
        <ul>
          {VIEWS.map(([view, title]) => (
            <li key={view}>
              <a href={`#/${view}`} aria-current={title === name ? 'page' : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
        <p class="who">
          <span>
            <strong>{session.name}</strong> may {SCOPES[session.scope] ?? session.scope}; the
            session ends <time>{ago(session.expires_at, now)}</time>
          </span>
          <button type="button" class="plain" onClick={() => void signOut()}>
            Sign out
          </button>
        </p>
      </nav>
      <main id="content">
        {problem !== '' && (
          <p class="fault" role="alert">
            {problem}
          </p>
        )}
        <View key={name} api={api} deps={deps} place={place} look={look} now={now} ended={ended} />
      </main>
    </>
  )
}

const SCOPES: Readonly<Record<string, string>> = {
  read: 'read',
  customers: 'change customers',
  all: 'do everything',
}

const [FIRST_VIEW] = VIEWS
if (FIRST_VIEW === undefined) throw new Error('internal error: a console without views')
const FIRST = FIRST_VIEW

/**
 * A refresh counter that increases every few seconds and when the page becomes visible again. It stops while the page
 * is hidden.
 */
function useLooks({ now, every }: ConsoleDeps) {
  const [state, setState] = useState(() => ({ look: 0, now: now() }))
  const last = useRef(0)
  useEffect(() => {
    const tick = () => {
      if (document.visibilityState !== 'visible') return
      last.current += 1
      setState({ look: last.current, now: now() })
    }
    document.addEventListener('visibilitychange', tick)
    const stop = every(POLL_INTERVAL_MS, tick)
    return () => {
      document.removeEventListener('visibilitychange', tick)
      stop()
    }
  }, [now, every])
  return state
}

function OwnProof({ deps }: ShownProps) {
  const [inputs, setInputs] = useState(NO_INPUTS)
  return (
    <Proof
      deps={deps}
      inputs={inputs}
      change={(changes) => setInputs((before) => ({ ...before, ...changes }))}
    />
  )
}
