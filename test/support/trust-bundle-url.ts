/** Where the routers of these tests say that their trust bundle is; production mode demands that they say it. */
export const TRUST_BUNDLE_URL = 'https://router.example/.well-known/trust.json'
