// Written by `make schemas`, from tools/states.py: documents as a monitor makes them.
export default {
 "madeAt": 1794744000000,
 "fine": {
  "schemaVersion": 1,
  "generatedAt": "2026-11-15T12:00:00.000Z",
  "checks": [
   {
    "service": "messaging",
    "chainId": null,
    "status": "current",
    "reason": "synced",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {
     "peers": 14
    }
   },
   {
    "service": "ppoi",
    "chainId": 1,
    "status": "current",
    "reason": "synced",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {
     "position": 184213,
     "head": 184213
    }
   },
   {
    "service": "broadcasters",
    "chainId": 1,
    "status": "current",
    "reason": "synced",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {
     "responding": 5,
     "monitored": 5
    }
   },
   {
    "service": "hosted-indexer",
    "chainId": 1,
    "status": "current",
    "reason": "synced",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {
     "position": 23000000,
     "head": 23000000
    }
   },
   {
    "service": "indexer",
    "chainId": 1,
    "status": "current",
    "reason": "synced",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  ]
 },
 "states": {
  "fine": {},
  "unavailable": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "unavailable",
    "reason": "unreachable",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "degraded": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "degraded",
    "reason": "behind",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "catching-up": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "catching-up",
    "reason": "behind",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "unknown": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "unknown",
    "reason": "no-observation",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": null,
    "metrics": {}
   }
  },
  "unmonitored": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "unmonitored",
    "reason": "not-configured",
    "observedAt": null,
    "lastSuccessAt": null,
    "expiresAt": null,
    "metrics": {}
   }
  },
  "reason:synced": {},
  "reason:behind": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "catching-up",
    "reason": "behind",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "reason:responding": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "current",
    "reason": "responding",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "reason:partial-coverage": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "degraded",
    "reason": "partial-coverage",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "reason:unreachable": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "unavailable",
    "reason": "unreachable",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "reason:not-configured": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "unmonitored",
    "reason": "not-configured",
    "observedAt": null,
    "lastSuccessAt": null,
    "expiresAt": null,
    "metrics": {}
   }
  },
  "reason:no-observation": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "unknown",
    "reason": "no-observation",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": null,
    "metrics": {}
   }
  },
  "reason:incompatible-reference": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "unknown",
    "reason": "incompatible-reference",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": null,
    "metrics": {}
   }
  },
  "reason:incomplete": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "degraded",
    "reason": "incomplete",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "reason:inconsistent": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "degraded",
    "reason": "inconsistent",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "reason:not-everywhere": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "unknown",
    "reason": "not-everywhere",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": null,
    "metrics": {
     "views": 2,
     "agreeing": 0
    }
   }
  },
  "stale": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "current",
    "reason": "synced",
    "observedAt": "2026-11-15T11:56:36.000Z",
    "lastSuccessAt": "2026-11-15T11:56:36.000Z",
    "expiresAt": "2026-11-15T11:59:06.000Z",
    "metrics": {}
   }
  },
  "dead-monitor": {
   "ageMs": 600000
  },
  "new-status": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "on-fire",
    "reason": "behind",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "new-reason": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "degraded",
    "reason": "moon-phase",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {}
   }
  },
  "dissent": {
   "indexer": {
    "service": "indexer",
    "chainId": 1,
    "status": "current",
    "reason": "synced",
    "observedAt": "2026-11-15T11:59:56.000Z",
    "lastSuccessAt": "2026-11-15T11:59:56.000Z",
    "expiresAt": "2026-11-15T12:02:26.000Z",
    "metrics": {
     "views": 3,
     "agreeing": 2
    }
   }
  },
  "other-version": {
   "schemaVersion": 2
  }
 },
 "history": {
  "schemaVersion": 1,
  "generatedAt": "2026-11-05T14:02:11.480Z",
  "bucketSeconds": 300,
  "retentionDays": 14,
  "from": "2026-11-05T12:00:00Z",
  "to": "2026-11-05T14:00:00Z",
  "rows": [
   {
    "service": "messaging",
    "chainId": null,
    "buckets": "ccccccccccccccccccccccccc",
    "uptime": {
     "24h": 1.0,
     "7d": 1.0,
     "14d": 1.0
    }
   },
   {
    "service": "ppoi",
    "chainId": 1,
    "buckets": "ccccccccccccckccccccccccc",
    "uptime": {
     "24h": 0.96,
     "7d": 0.96,
     "14d": 0.96
    }
   },
   {
    "service": "broadcasters",
    "chainId": 1,
    "buckets": "ccccccccccccccccccccddccd",
    "uptime": {
     "24h": 0.88,
     "7d": 0.88,
     "14d": 0.88
    }
   },
   {
    "service": "indexer",
    "chainId": 1,
    "buckets": "------------??ccccccckkuu",
    "uptime": {
     "24h": null,
     "7d": null,
     "14d": null
    }
   },
   {
    "service": "hosted-indexer",
    "chainId": 11155111,
    "buckets": ".........................",
    "uptime": {
     "24h": null,
     "7d": null,
     "14d": null
    }
   }
  ]
 }
};
