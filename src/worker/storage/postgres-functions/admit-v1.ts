/**
 * Admits requests with the decisions of `settle/admit-sql.ts`. Requests come in rounds with at most one request of each
 * customer: each round sees the decisions of the rounds before it. Returns the facts of each request as JSON, in order;
 * null: there is no such key.
 *
 * The commit does not wait for the disk. A database that crashes may lose the admissions of its last moment, but never a
 * part of one; a settlement that follows bills its request all the same.
 */
export const statement = `CREATE OR REPLACE FUNCTION cmr_admit_v1(rounds jsonb, lock_ms integer)
RETURNS SETOF text LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $cmr$
DECLARE
  round jsonb;
  plans jsonb;
  answers text[];
  claimed jsonb;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM cmr_lock_customers_v1(
    ARRAY(SELECT jsonb_path_query(rounds, '$[*].entries[*].customer_id') #>> '{}'), lock_ms);
  FOR round, plans IN SELECT value -> 'entries', value -> 'plans' FROM jsonb_array_elements(rounds) LOOP
    WITH entry AS MATERIALIZED (
      SELECT * FROM ROWS FROM (jsonb_to_recordset(round) AS (request_id text, customer_id text, key_prefix text,
        key_hash text, amounts jsonb, claim_name text, claim_fingerprint text, expires_at bigint, at_ms bigint)) WITH ORDINALITY
    ), found AS MATERIALIZED (
      SELECT entry.ordinality, entry.request_id, entry.customer_id, entry.key_prefix, entry.claim_name,
        entry.claim_fingerprint, entry.expires_at AS reserved_until, entry.at_ms,
        (entry.amounts ->> (terms ->> 'discount_pct'))::bigint AS amount,
        LEAST((terms ->> 'requests_per_minute')::bigint, k.requests_per_minute) AS requests,
        LEAST((terms ->> 'concurrent_requests')::bigint, k.concurrent_requests) AS concurrent,
        ABS(entry.at_ms - k.window_started_at) < 60000 AS in_window,
        c.plan, c.name AS customer_name, c.receipt_retention_days, c.suspended_at, c.billing,
        c.balance_nano, c.reserved_nano, former.ends_at, k.name AS key_name, k.window_started_at,
        k.window_requests, k.window_tokens, k.expires_at, k.models, k.requests_per_minute,
        k.tokens_per_minute, k.concurrent_requests, k.min_attestation, k.limit_nano,
        CASE WHEN k.spent_at < cmr_period_start_v1(k.limit_reset, entry.at_ms) THEN 0
          ELSE k.spent_nano END AS spent_nano
      FROM entry
        JOIN customers AS c ON c.customer_id = entry.customer_id
        JOIN api_keys AS k ON k.customer_id = entry.customer_id AND k.key_prefix = entry.key_prefix
          AND k.deleted_at IS NULL
        CROSS JOIN LATERAL (SELECT COALESCE(plans -> c.plan, plans -> 'standard',
          '{"discount_pct": 0}') AS terms) AS plan
        LEFT JOIN LATERAL (SELECT r.ends_at FROM rotated_keys AS r WHERE k.key_hash <> entry.key_hash
          AND r.customer_id = entry.customer_id AND r.key_prefix = entry.key_prefix
          AND r.key_hash = entry.key_hash) AS former ON true
      WHERE k.key_hash = entry.key_hash OR former.ends_at IS NOT NULL
    ), counted AS MATERIALIZED (
      SELECT found.*,
        limit_nano IS NOT NULL AND limit_nano < amount + spent_nano
          + (SELECT COALESCE(SUM(r.amount_nano), 0) FROM reservations AS r
            WHERE r.customer_id = found.customer_id AND r.key_prefix = found.key_prefix) AS over_limit,
        claim_name IS NOT NULL AND EXISTS (SELECT 1 FROM idempotent_requests AS i
          WHERE i.customer_id = found.customer_id AND i.name = found.claim_name
            AND i.request_id <> found.request_id AND i.held_until > found.at_ms) AS is_repeat,
        CASE WHEN concurrent IS NULL THEN 0 ELSE (SELECT COUNT(*) FROM reservations AS r
          WHERE r.customer_id = found.customer_id AND r.key_prefix = found.key_prefix
            AND r.expires_at > found.at_ms) END AS open_requests
      FROM found
    ), reserved AS (
      -- A request that has its reservation gets no second one.
      INSERT INTO reservations (request_id, customer_id, key_prefix, amount_nano, created_at, expires_at)
      SELECT request_id, customer_id, key_prefix, amount, at_ms, reserved_until FROM counted
      WHERE NOT over_limit AND NOT is_repeat AND suspended_at IS NULL
        AND (ends_at IS NULL OR ends_at > at_ms)
        AND (expires_at IS NULL OR expires_at > at_ms)
        AND (concurrent IS NULL OR concurrent > open_requests)
        AND (NOT in_window OR ((requests IS NULL OR window_requests < requests)
          AND (tokens_per_minute IS NULL OR window_tokens < tokens_per_minute)))
        AND (billing = 'postpaid' OR balance_nano - reserved_nano >= amount)
      ON CONFLICT (request_id) DO NOTHING
      RETURNING request_id
    ), held AS (
      UPDATE customers AS c SET reserved_nano = c.reserved_nano + n.amount
      FROM reserved JOIN counted AS n USING (request_id) WHERE c.customer_id = n.customer_id
    ), windowed AS (
      UPDATE api_keys AS k SET
        window_requests = CASE WHEN n.in_window THEN k.window_requests + 1 ELSE 1 END,
        window_tokens = CASE WHEN n.in_window THEN k.window_tokens ELSE 0 END,
        window_started_at = CASE WHEN n.in_window THEN k.window_started_at ELSE n.at_ms END
      FROM reserved JOIN counted AS n USING (request_id)
      WHERE k.customer_id = n.customer_id AND k.key_prefix = n.key_prefix
        AND (n.requests IS NOT NULL OR n.tokens_per_minute IS NOT NULL)
      RETURNING n.request_id, k.window_requests, k.window_tokens, k.window_started_at
    )
    SELECT array_agg(CASE WHEN n.request_id IS NOT NULL THEN json_build_object(
          'admitted', s.request_id IS NOT NULL OR EXISTS (SELECT 1 FROM reservations AS r
            WHERE r.request_id = n.request_id),
          'customerName', n.customer_name, 'keyName', n.key_name, 'plan', n.plan,
          'receiptRetentionDays', n.receipt_retention_days, 'suspended', n.suspended_at IS NOT NULL,
          'expiresAt', n.expires_at, 'secretEndsAt', n.ends_at, 'models', n.models,
          'minAttestation', n.min_attestation, 'requestsPerMinute', n.requests_per_minute,
          'tokensPerMinute', n.tokens_per_minute, 'concurrentRequests', n.concurrent_requests,
          'windowStartedAt', COALESCE(w.window_started_at, n.window_started_at),
          'windowRequests', COALESCE(w.window_requests, n.window_requests),
          'windowTokens', COALESCE(w.window_tokens, n.window_tokens),
          'isRepeat', n.is_repeat, 'overLimit', n.over_limit, 'openRequests', n.open_requests)::text END
        ORDER BY entry.ordinality),
      jsonb_agg(jsonb_build_array(n.customer_id, n.claim_name, n.request_id, n.claim_fingerprint,
        n.at_ms + 60000, n.reserved_until)) FILTER (WHERE s.request_id IS NOT NULL AND n.claim_name IS NOT NULL)
    INTO answers, claimed
    FROM entry LEFT JOIN counted AS n USING (ordinality)
      LEFT JOIN reserved AS s ON s.request_id = n.request_id
      LEFT JOIN windowed AS w ON w.request_id = n.request_id;

    IF claimed IS NOT NULL THEN
      INSERT INTO idempotent_requests AS i (customer_id, name, request_id, fingerprint, held_until, sweep_at)
      SELECT c ->> 0, c ->> 1, c ->> 2, c ->> 3, (c ->> 4)::bigint, (c ->> 5)::bigint
      FROM jsonb_array_elements(claimed) AS c
      ON CONFLICT (customer_id, name) DO UPDATE SET
        fenced_until = CASE WHEN i.request_id = excluded.request_id THEN i.fenced_until ELSE i.sweep_at END,
        request_id = excluded.request_id, fingerprint = excluded.fingerprint,
        done = 0, bytes = 0, answer = NULL, held_until = excluded.held_until,
        sweep_at = GREATEST(i.sweep_at, excluded.sweep_at);
    END IF;
    RETURN QUERY SELECT unnest(answers);
  END LOOP;
END
$cmr$`
