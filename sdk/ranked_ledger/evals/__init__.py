"""Recall policies measured on decisions and questions with known answers, each asked as of its step."""
